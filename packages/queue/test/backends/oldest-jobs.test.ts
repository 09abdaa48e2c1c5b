import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EVENT_BATCH, eventJobId, JOB_RUN_EVENTS } from '@runhook/contract';
import {
  createQueueBackend,
  ENQUEUE_WINDOW_MS,
  type EventQueue,
  openEventQueue,
  type QueueBackend,
} from '@runhook/queue';
import { createTestQueue, queueBackends, WAIT_TIMEOUT_MS } from '@runhook/testing';

/** Time between two jobs: longer than the maximum time from an event's commit to its job. */
const LATER_MS = 2 * ENQUEUE_WINDOW_MS;
const COUNT = 3;
/** Number of jobs: more than the oldest ones that findQueued() reads. */
const JOBS_AHEAD = 20;

describe.each(queueBackends())('events that share jobs, on $name', (kind) => {
  let backend: QueueBackend;
  let events: EventQueue;
  const closers: (() => Promise<unknown>)[] = [];
  const firstMs = Date.now() - COUNT * LATER_MS;

  beforeEach(async () => {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    backend = createQueueBackend(testQueue.url, { callMs: WAIT_TIMEOUT_MS });
    events = openEventQueue(backend, () => undefined);
    closers.push(() => events.close());
    const queue = backend.createQueue<object>(JOB_RUN_EVENTS);
    closers.push(() => queue.close());
    for (let n = 0; n < COUNT; n += 1)
      await queue.add(
        EVENT_BATCH,
        { events: [] },
        { jobId: `batch_${n}`, timestamp: firstMs + n * LATER_MS },
      );
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const oldest = { eventId: 'wev_000000000000000000000000000', accountId: 1, sinceMs: firstMs };
  const queuedIds = async () => [...(await events.findQueued([oldest]))];

  test('count as queued while the oldest job waits, although other jobs were added later', async () => {
    expect(await queuedIds()).toEqual([eventJobId(oldest)]);
    expect((await events.nextJob())?.id).toBe('batch_0');
  });

  test('count as queued while the oldest job is active, although other jobs were taken later', async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let takenCount = 0;
    const allTaken = new Promise<void>((resolve) => {
      const worker = backend.createWorker(
        JOB_RUN_EVENTS,
        async () => {
          takenCount += 1;
          if (takenCount === COUNT) resolve();
          await ended;
        },
        { concurrency: COUNT },
      );
      closers.push(() => worker.close());
    });
    await allTaken;
    expect(await queuedIds()).toEqual([eventJobId(oldest)]);
    end();
  });

  test('count as lost if every waiting or active job was added later', async () => {
    const sinceMs = firstMs - LATER_MS;
    expect([...(await events.findQueued([{ ...oldest, sinceMs }]))]).toEqual([]);
  });

  test('count as queued while their shared job is delayed after a fault and once it is due, and other events do not', async () => {
    const sinceMs = firstMs - LATER_MS;
    const { eventId, accountId } = oldest;
    const batch = { events: [{ eventId, accountId, eventType: 'job.run.started' }] };
    const queue = backend.createQueue<object>(JOB_RUN_EVENTS);
    closers.push(() => queue.close());
    await queue.add(EVENT_BATCH, batch, { jobId: 'batch_delayed', timestamp: sinceMs, delay: 3_600_000 });
    const other = { eventId: 'wev_000000000000000000000000001', accountId, sinceMs };
    expect([...(await events.findQueued([{ ...oldest, sinceMs }, other]))]).toEqual([eventJobId(oldest)]);
    // BullMQ puts a job that becomes due behind all others on Redis.
    for (let n = 0; n < JOBS_AHEAD; n += 1) await queue.add(EVENT_BATCH, { events: [] });
    await (await queue.getJob('batch_delayed'))?.promote();
    expect([...(await events.findQueued([{ ...oldest, sinceMs }, other]))]).toEqual([eventJobId(oldest)]);
  });
});
