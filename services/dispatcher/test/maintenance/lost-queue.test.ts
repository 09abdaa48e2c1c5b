import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS, MAINTENANCE, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, prepareQueue, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from '../harness.ts';
import { deliveriesOf } from '../log-rows.ts';

/**
 * Number of deliveries: the slots of an endpoint before its first success. Further ones would be probes every few
 * seconds after three failures.
 */
const COUNT = 16;
/** Timeout for the redelivery: longer than the grace period of the reconciler. */
const DETECTION_TIMEOUT = { timeoutMs: 240_000 };

describe.each(oneQueueBackend())('after the loss of all jobs in the queue, on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  /** Empties the queue like an operator's FLUSHDB, including the maintenance schedule. */
  async function emptyQueue(): Promise<void> {
    for (const name of [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES, MAINTENANCE]) {
      const queue = createQueueBackend(harness.queueUrl).createQueue<object>(name);
      await queue.obliterate({ force: true });
      await queue.close();
    }
    // On PostgreSQL this also drops the sequences of job ids, which only migrate may create.
    await prepareQueue(harness.queueUrl);
  }

  test('each delivery that waited for a retry arrives with one more attempt', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    harness.receiver.respondWith(503);
    // No retry is due before the queue is lost, however long that takes.
    await harness.startDispatcher({ deliveryMaxRetries: 3, retryBaseDelayMs: 3_600_000 });
    const job = harness.account.jobs[0] as never;
    await harness.publisher.publishMany(
      Array.from({ length: COUNT }, (_, index) => exampleEvent('job.run.started', job, 9_000 + index)),
    );
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ attempt_count }) => attempt_count > 0)).toHaveLength(COUNT);
    }, DETECTION_TIMEOUT);
    await emptyQueue();
    harness.receiver.respondWith(200);
    await harness.database.pool.query(`UPDATE deliveries SET next_attempt_at = now() - interval '1 minute'`);
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(COUNT);
      expect(rows.every(({ attempt_count }) => attempt_count === 2)).toBe(true);
    }, DETECTION_TIMEOUT);
  });
});
