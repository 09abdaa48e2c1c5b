import { afterEach, describe, expect, test } from '@jest/globals';
import { createTestQueue, eventually, queueBackends } from '@runhook/testing';
import { type Backlog, SharedConcurrency } from '../../src/backends/shared-concurrency.ts';
import { createQueueBackend, DelayedError } from '../../src/index.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe.each(queueBackends())('a worker of the queue on $name', (kind) => {
  test('starts fetched jobs before it fetches hundreds more, and then reaches its concurrency', async () => {
    const CONCURRENCY = 200;
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    const backend = createQueueBackend(testQueue.url);
    const queue = backend.createQueue<{ index: number }>('paced');
    closers.push(() => queue.close());
    await queue.addBulk(Array.from({ length: 300 }, (_, index) => ({ name: 'job', data: { index } })));
    let initiallyFetched = Number.NaN;
    let startedCount = 0;
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const worker = backend.createWorker<{ index: number }>(
      'paced',
      async () => {
        startedCount += 1;
        if (startedCount === 1) initiallyFetched = await queue.getActiveCount();
        await ended;
      },
      { concurrency: CONCURRENCY },
    );
    closers.push(() => worker.close());
    closers.push(async () => end());
    worker.on('error', () => undefined);
    await eventually(() => expect(startedCount).toBe(CONCURRENCY));
    expect(initiallyFetched).toBeLessThan(CONCURRENCY / 2);
    expect(await queue.getActiveCount()).toBe(CONCURRENCY);
    end();
    await eventually(() => expect(startedCount).toBe(300));
  });

  test('takes a job that it delays while it waits for jobs when that one is due', async () => {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    const backend = createQueueBackend(testQueue.url, { silentMs: 3_600_000 });
    const queue = backend.createQueue<object>('delayed');
    closers.push(() => queue.close());
    let waits: () => void = () => undefined;
    const isWaiting = new Promise<void>((resolve) => {
      waits = resolve;
    });
    let runCount = 0;
    const worker = backend.createWorker<object>(
      'delayed',
      async (job, token) => {
        runCount += 1;
        if (runCount > 1) return;
        await isWaiting;
        await job.moveToDelayed(Date.now() + 100, token);
        throw new DelayedError();
      },
      // Longer than the test waits.
      { concurrency: 2, drainDelay: 1_800 },
    );
    closers.push(() => worker.close());
    worker.on('error', () => undefined);
    const workerBackend = worker.getBackend();
    const waitForJob = workerBackend.waitForJob.bind(workerBackend);
    workerBackend.waitForJob = async (seconds) => {
      if (runCount > 0) waits();
      return await waitForJob(seconds);
    };
    await queue.add('job', {});
    await eventually(() => expect(runCount).toBe(2));
  });

  test('stops fetching jobs while the backlog is saturated, and continues once it is not, although no job has ended', async () => {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    const backend = createQueueBackend(testQueue.url);
    const queue = backend.createQueue<{ index: number }>('backlog');
    closers.push(() => queue.close());
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let startedCount = 0;
    const backlog: Backlog = {
      get isSaturated() {
        return startedCount >= 3 && startedCount < 1_000;
      },
      onCapacity: () => undefined,
    };
    await queue.addBulk(Array.from({ length: 200 }, (_, index) => ({ name: 'job', data: { index } })));
    const worker = backend.createWorker<{ index: number }>(
      'backlog',
      async () => {
        startedCount += 1;
        await ended;
      },
      { concurrency: 300 },
      0,
      new SharedConcurrency(300, backlog),
    );
    closers.push(() => worker.close());
    closers.push(async () => end());
    worker.on('error', () => undefined);
    await eventually(() => expect(startedCount).toBeGreaterThanOrEqual(3));
    const [, active] = await Promise.all([iterateEventLoop(), queue.getActiveCount()]);
    expect(active).toBeLessThan(100);
    startedCount += 1_000;
    backlog.onCapacity();
    await eventually(() => expect(startedCount).toBe(1_200));
  });
});

async function iterateEventLoop(): Promise<void> {
  for (let iteration = 0; iteration < 20; iteration += 1)
    await new Promise((resolve) => setImmediate(resolve));
}
