import { afterEach, describe, expect, test } from '@jest/globals';
import { createQueueBackend } from '@runhook/queue';
import { createTestQueue, eventually, queueBackends, startTcpProxy } from '@runhook/testing';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe.each(queueBackends())('a worker on $name', (backend) => {
  test('resumes after its connections died without being closed, once the network recovers', async () => {
    const testQueue = await createTestQueue(backend);
    closers.push(() => testQueue.drop());
    const queueUrl = testQueue.url;
    const proxy = await startTcpProxy(queueUrl);
    closers.push(() => proxy.close());
    const queue = createQueueBackend(queueUrl).createQueue('stalled');
    closers.push(() => queue.close());
    const processed = new Set<string | undefined>();
    const worker = createQueueBackend(proxy.url, { silentMs: 4_000 }).createWorker(
      'stalled',
      async ({ id }) => processed.add(id),
      {
        concurrency: 20,
        drainDelay: 1,
        stalledInterval: 1_000,
        lockDuration: 2_000,
        maxStalledCount: 1_000,
      },
    );
    closers.push(() => worker.close());
    worker.on('error', () => undefined);
    const add = (count: number) =>
      queue.addBulk(Array.from({ length: count }, (_, index) => ({ name: 'job', data: { index } })));
    await add(300);
    await eventually(() => expect(processed.size).toBeGreaterThan(20));
    proxy.stall();
    await add(100);
    expect(proxy.stalledCount).toBeGreaterThan(0);
    await proxy.restore();
    await eventually(() => expect(processed.size).toBe(400));
    const received = new Promise<void>((resolve) => worker.once('completed', () => resolve()));
    await add(1);
    await received;
    await eventually(() => expect(proxy.stalledCount).toBe(0));
  });
});
