import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { batchedEvents, createId, JOB_RUN_EVENTS, type PublishedEvent } from '@runhook/contract';
import { createTestQueue, EXAMPLE_JOB, exampleEvent, queueBackends, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { createBurstLimiter } from '../src/burst-limiter.ts';
import { type IdentifiedEvent, openEventQueue } from '../src/event-queue.ts';
import { createQueueBackend } from '../src/index.ts';

test('an account may add a thousand events at normal priority at once, and five hundred more each second', () => {
  let nowMs = 0;
  const { take } = createBurstLimiter(() => nowMs);
  const countTaken = (count: number) => Array.from({ length: count }, () => take(1)).filter(Boolean).length;
  expect(countTaken(1_500)).toBe(1_000);
  nowMs += 100;
  expect(countTaken(1_500)).toBe(50);
  nowMs += 3_600_000;
  expect(countTaken(1_500)).toBe(1_000);
});

test('events of one account do not count against the burst limit of another', () => {
  const { take } = createBurstLimiter(() => 0);
  for (let count = 0; count < 5_000; count += 1) take(1);
  expect(take(1)).toBe(false);
  expect(take(2)).toBe(true);
});

const eventOf = (accountId: number): IdentifiedEvent => ({
  ...exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: accountId }),
  eventId: createId('event', Date.now()),
});

describe.each(queueBackends())('the burst limit on $name', (backend) => {
  let queueUrl: string;
  const closers: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    const testQueue = await createTestQueue(backend);
    closers.push(() => testQueue.drop());
    queueUrl = testQueue.url;
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  test('does not change the jobs of a failed call that is repeated', async () => {
    const backend = createQueueBackend(queueUrl, { callMs: WAIT_TIMEOUT_MS });
    const burstLimiter = createBurstLimiter(() => 0);
    // The remaining tokens run out in the middle of a job.
    for (let used = 0; used < 695; used += 1) burstLimiter.take(1);
    let responsesToLose = 1;
    const losingBackend: typeof backend = {
      ...backend,
      async withinCallTimeout(call) {
        const result = await backend.withinCallTimeout(call);
        const { waiting = 0 } = await queue.getJobCounts();
        if (waiting > 0 && responsesToLose-- > 0) throw new Error('taken, and no answer');
        return result;
      },
    };
    const queue = backend.createQueue<PublishedEvent>(JOB_RUN_EVENTS);
    closers.push(() => queue.close());
    const events = openEventQueue(losingBackend, () => undefined, undefined, burstLimiter);
    closers.push(() => events.close());
    const burst = Array.from({ length: 400 }, () => eventOf(1));
    await expect(events.add(burst)).rejects.toThrow('taken, and no answer');
    await events.add(burst);
    const jobs = await queue.getJobs(['waiting', 'prioritized']);
    const queued = jobs.flatMap(({ data }) => batchedEvents(data) ?? [data]);
    expect(new Set(queued.map(({ eventId }) => eventId)).size).toBe(400);
    expect(queued).toHaveLength(400);
  });

  test('lets an event of one account precede the rest of a burst of another, and no event is lost', async () => {
    // The clock stands still, so that no token is refilled however slowly this machine adds the events.
    const burstLimiter = createBurstLimiter(() => 0);
    const events = openEventQueue(
      createQueueBackend(queueUrl, { callMs: WAIT_TIMEOUT_MS }),
      () => undefined,
      undefined,
      burstLimiter,
    );
    closers.push(() => events.close());
    const burst = 1_500;
    await events.add(Array.from({ length: burst }, () => eventOf(1)));
    await events.add([eventOf(2)]);

    const order: number[] = [];
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const worker = createQueueBackend(queueUrl).createWorker<PublishedEvent>(
      JOB_RUN_EVENTS,
      async ({ data }) => {
        for (const { accountId } of batchedEvents(data) ?? [data]) order.push(accountId);
        if (order.length === burst + 1) end();
      },
      { concurrency: 2 },
    );
    worker.on('error', () => undefined);
    closers.push(() => worker.close());
    await ended;
    // Events within the limit came first, except for those that were processed concurrently.
    expect(order.indexOf(2)).toBeGreaterThanOrEqual(1_000 - 50);
    expect(order.indexOf(2)).toBeLessThanOrEqual(1_000 + 50);
    expect(order.filter((accountId) => accountId === 1)).toHaveLength(burst);
  });
});
