import { afterEach, expect, test } from '@jest/globals';
import { createQueueBackend } from '@runhook/queue';
import { createTestDatabase, eventually, startTcpProxy } from '@runhook/testing';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('a worker whose first connection breaks while it opens does not block its process, and works later', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const queue = createQueueBackend(database.url).createQueue('reconnect');
  closers.push(() => queue.close());
  queue.on('error', () => undefined);
  await queue.add('job', {});

  const proxy = await startTcpProxy(database.url);
  closers.push(() => proxy.close());
  proxy.stall();
  const errors: Error[] = [];
  const processed: (string | undefined)[] = [];
  const worker = createQueueBackend(proxy.url).createWorker(
    'reconnect',
    async ({ id }) => void processed.push(id),
    { runRetryDelay: 100 },
  );
  closers.push(() => worker.close());
  worker.on('error', (error) => errors.push(error));
  await eventually(() => expect(proxy.socketCount).toBeGreaterThan(0));
  await proxy.cut();
  // Other work of the process continues: a loop without a pause would never let this pass.
  await eventually(() => expect(errors.length).toBeGreaterThan(0));
  await proxy.restore();
  await eventually(() => expect(processed).toHaveLength(1));
  expect(worker.isRunning()).toBe(true);
});
