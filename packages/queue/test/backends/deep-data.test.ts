import { afterEach, expect, test } from '@jest/globals';
import { createQueueBackend, UnrecoverableError } from '@runhook/queue';
import { createTestDatabase, createTestQueue, eventually, queueBackends } from '@runhook/testing';
import type { RedisQueueBackend } from 'bullmq';
import type pg from 'pg';

const DEPTH = 5_000;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('a job whose data nests too deeply for JSON.stringify is read and processed without the deepest levels', async () => {
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

const redis = queueBackends().find(({ name }) => name === 'Redis');

(redis ? test : test.skip)(
  'a job whose data is not JSON is read and processed as text, and does not affect the jobs that are read with it',
  async () => {
    const testQueue = await createTestQueue(redis as NonNullable<typeof redis>);
    closers.push(() => testQueue.drop());
    const backend = createQueueBackend(testQueue.url);
    const queue = backend.createQueue<unknown>('text');
    closers.push(() => queue.close());
    const invalid = '{"code":NaN}';
    for (const id of ['before', 'invalid', 'after']) await queue.add('job', { id }, { jobId: id });
    const client = (await (queue.getBackend() as RedisQueueBackend).client) as unknown as {
      hset(key: string, field: string, value: string): Promise<number>;
    };
    await client.hset(queue.toKey('invalid'), 'data', invalid);
    const all = [{ id: 'before' }, invalid, { id: 'after' }];
    expect((await queue.getWaiting()).map(({ data }) => data)).toEqual(all);
    expect((await backend.peek(queue, 3)).map(({ data }) => data)).toEqual(all);

    const processed: unknown[] = [];
    const worker = backend.createWorker<unknown>(
      'text',
      async ({ data }) => {
        processed.push(data);
        if (data === invalid) throw new UnrecoverableError('malformed');
      },
      {},
    );
    closers.push(() => worker.close());
    worker.on('error', () => undefined);
    await eventually(async () =>
      expect(await queue.getFailed()).toMatchObject([{ data: invalid, failedReason: 'malformed' }]),
    );
    await eventually(() => expect(processed).toEqual(all));
  },
);
