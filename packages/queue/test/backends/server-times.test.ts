import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createQueueBackend, DelayedError, type QueueBackend } from '@runhook/queue';
import { createTestQueue, eventually, queueBackends, WAIT_TIMEOUT_MS } from '@runhook/testing';
import type { Queue } from 'bullmq';

const NAME = 'clocked';
const HOUR_MS = 3_600_000;

describe.each(queueBackends())('a queue on $name whose clock differs from that of this host', (kind) => {
  let queueUrl: string;
  const closers: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    queueUrl = testQueue.url;
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const open = (aheadMs: number) =>
    createQueueBackend(queueUrl, { callMs: WAIT_TIMEOUT_MS, clock: { nowMs: () => Date.now() + aheadMs } });

  async function openQueue(backend: QueueBackend): Promise<Queue<object>> {
    const queue = backend.createQueue<object>(NAME);
    closers.push(() => queue.close());
    await queue.waitUntilReady();
    return queue;
  }

  test.each([
    ['ahead', HOUR_MS],
    ['behind', -HOUR_MS],
  ])(
    'takes a job when it is due, also after a delay and a failure, while the clock is %s',
    async (_name, aheadMs) => {
      const backend = open(aheadMs);
      const queue = await openQueue(backend);
      const taken: { atMs: number; timestamp: number }[] = [];
      const worker = backend.createWorker<object>(
        NAME,
        async (job, token) => {
          taken.push({ atMs: Date.now(), timestamp: job.timestamp });
          if (taken.length === 1) {
            await job.moveToDelayed(Date.now() + 700, token);
            throw new DelayedError();
          }
          if (taken.length === 2) throw new Error('again');
        },
        { settings: { backoffStrategy: () => 700 } },
      );
      worker.on('error', () => undefined);
      closers.push(() => worker.close());
      const addedMs = Date.now();
      await queue.add('job', {}, { delay: 700, attempts: 3, backoff: { type: 'ours' } });
      await eventually(() => expect(taken).toHaveLength(3));
      const waitsMs = taken.map(({ atMs }, index) => atMs - (taken[index - 1]?.atMs ?? addedMs));
      for (const wait of waitsMs) expect(wait).toBeGreaterThanOrEqual(690);
      for (const { timestamp } of taken) expect(Math.abs(timestamp - addedMs - aheadMs)).toBeLessThan(60_000);
    },
  );

  test('has a delayed job that is due by the clock of the queue, and not by the clock of this host', async () => {
    // `early` uses the clock of this host, which is an hour behind that of the queue.
    const queue = await openQueue(open(HOUR_MS));
    await queue.add('job', {}, { delay: 400 });
    const early = open(0).createWorker<object>(NAME, async () => undefined, { autorun: false });
    closers.push(() => early.close());
    expect(await early.getNextJob('token', { block: false })).toBeUndefined();
    const other = open(HOUR_MS).createWorker<object>(NAME, async () => undefined, { autorun: false });
    closers.push(() => other.close());
    await eventually(async () =>
      expect(await other.getNextJob('token', { block: false })).toMatchObject({ name: 'job' }),
    );
  });

  test('runs a schedule by the clock of the server', async () => {
    const backend = open(HOUR_MS);
    const queue = await openQueue(backend);
    let runs = 0;
    const worker = backend.createWorker<object>(
      NAME,
      async () => {
        runs += 1;
      },
      {},
    );
    worker.on('error', () => undefined);
    closers.push(() => worker.close());
    await queue.upsertJobScheduler('each', { every: 300 }, { name: 'each' });
    await eventually(() => expect(runs).toBeGreaterThan(3));
  });
});
