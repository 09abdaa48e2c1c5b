import { afterEach, describe, expect, test } from '@jest/globals';
import type { RunRequest } from '@runhook/contract';
import { createTestQueue, eventually, queueBackends } from '@runhook/testing';
import { createQueueBackend, createRunRequestWorker, openRunRequestQueue } from '../src/index.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const requestOf = (runId: number, attempt = 1): RunRequest => ({ accountId: 1, runId, jobId: 7, attempt });

describe.each(queueBackends())('the queue of run requests on $name', (kind) => {
  async function open() {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    const backend = createQueueBackend(testQueue.url);
    const queue = openRunRequestQueue(backend, () => undefined);
    closers.push(() => queue.close());
    const startWorker = (process: (request: RunRequest) => Promise<boolean>) => {
      const worker = createRunRequestWorker(backend, process, 1);
      worker.on('error', () => undefined);
      closers.push(() => worker.close());
    };
    return { queue, startWorker };
  }

  test('hands out each request once, in order, and not those that were removed', async () => {
    const { queue, startWorker } = await open();
    await queue.add([requestOf(1), requestOf(2), requestOf(3)]);
    await queue.add([requestOf(1), requestOf(3, 2)]);
    await queue.remove([requestOf(2), requestOf(9)]);
    const taken: RunRequest[] = [];
    startWorker(async (request) => {
      taken.push(request);
      return true;
    });
    await eventually(() => expect(taken).toEqual([requestOf(1), requestOf(3), requestOf(3, 2)]));
  });

  test('offers a request again that a worker returned', async () => {
    const { queue, startWorker } = await open();
    await queue.add([requestOf(1)]);
    const taken: number[] = [];
    startWorker(async ({ runId }) => taken.push(runId) > 2);
    await eventually(() => expect(taken).toEqual([1, 1, 1]));
  });
});
