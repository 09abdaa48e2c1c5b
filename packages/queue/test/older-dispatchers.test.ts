import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { WEBHOOK_DELIVERIES } from '@runhook/contract';
import {
  createQueueBackend,
  type DeliveryQueue,
  DISPATCHER_WORKER_NAME,
  openDeliveryQueue,
  type QueueBackend,
} from '@runhook/queue';
import { createTestQueue, eventually, queueBackends } from '@runhook/testing';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe.each(queueBackends())('the dispatchers that are connected to a queue on $name', (kind) => {
  let backend: QueueBackend;
  let deliveries: DeliveryQueue;

  beforeEach(async () => {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    backend = createQueueBackend(testQueue.url);
    deliveries = openDeliveryQueue(backend, () => undefined);
    closers.push(() => deliveries.close());
  });

  async function startWorker(name?: string) {
    const worker = backend.createWorker(WEBHOOK_DELIVERIES, async () => undefined, {
      ...(name !== undefined && { name }),
    });
    await worker.waitUntilReady();
    closers.push(() => worker.close());
    return worker;
  }
  const connectedWorkers = async () => {
    const queue = backend.createQueue(WEBHOOK_DELIVERIES);
    try {
      return (await backend.workerNames(queue)).sort();
    } finally {
      await queue.close();
    }
  };

  test('are of an older release if a worker has no name or that of a lower level', async () => {
    expect(await deliveries.hasOlderDispatcher()).toBe(false);
    await startWorker(DISPATCHER_WORKER_NAME);
    await eventually(async () => expect(await connectedWorkers()).toEqual([DISPATCHER_WORKER_NAME]));
    expect(await deliveries.hasOlderDispatcher()).toBe(false);
    const unnamed = await startWorker();
    await eventually(async () => expect(await connectedWorkers()).toEqual(['', DISPATCHER_WORKER_NAME]));
    expect(await deliveries.hasOlderDispatcher()).toBe(true);
    await unnamed.close();
    await eventually(async () => expect(await deliveries.hasOlderDispatcher()).toBe(false));
    await startWorker('level-0');
    await eventually(async () => expect(await deliveries.hasOlderDispatcher()).toBe(true));
  });

  test('are not counted for another queue of the same server', async () => {
    const other = await createTestQueue(kind);
    closers.push(() => other.drop());
    const worker = createQueueBackend(other.url).createWorker(WEBHOOK_DELIVERIES, async () => undefined, {});
    closers.push(() => worker.close());
    await worker.waitUntilReady();
    expect(await deliveries.hasOlderDispatcher()).toBe(false);
  });
});
