import { afterEach, expect, test } from '@jest/globals';
import { createQueueBackend } from '@runhook/queue';
import { createTestDatabase, eventually } from '@runhook/testing';
import type pg from 'pg';

const DEPTH = 5_000;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('a job whose data nests too deeply for JSON.stringify is read and processed, without what is below', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const backend = createQueueBackend(database.url);
  const queue = backend.createQueue<{ name: string; more: unknown }>('deep');
  closers.push(() => queue.close());
  const { id } = await queue.add('job', { name: 'as sent', more: null });
  const { connection } = queue.getBackend() as unknown as { connection: { pool: pg.Pool } };
  const more = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`;
  await connection.pool.query('UPDATE bullmq.job SET data = $1 WHERE id = $2', [
    `{"name":"as sent","more":${more}}`,
    id,
  ]);
  expect((await queue.getWaiting()).map(({ data }) => data.name)).toEqual(['as sent']);
  const processed: string[] = [];
  const worker = backend.createWorker<{ name: string }>(
    'deep',
    async ({ data }) => void processed.push(data.name),
    {},
  );
  closers.push(() => worker.close());
  worker.on('error', () => undefined);
  await eventually(() => expect(processed).toEqual(['as sent']));
});
