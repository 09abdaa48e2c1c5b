import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS, UPKEEP, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { eventually, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from '../harness.ts';
import { deliveriesOf } from '../log-rows.ts';

const COUNT = 100;
const PATIENCE = { timeoutMs: 60_000 };

describe.each(queueBackends())('when everything in the queue is lost, on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  /** What an operator's FLUSHDB does, schedule included. */
  async function loseTheQueue(): Promise<void> {
    for (const name of [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES, UPKEEP]) {
      const queue = createQueueBackend(harness.queueUrl).createQueue<object>(name);
      await queue.obliterate({ force: true });
      await queue.close();
    }
  }

  test('what waited for a retry arrives all the same, and nothing gets more attempts than its limit', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    harness.receiver.respondWith(503);
    await harness.startDispatcher({ deliveryTimeoutMs: 500, deliveryMaxRetries: 3, retryBaseDelayMs: 2_000 });
    const job = harness.account.jobs[0] as never;
    await harness.publisher.publishMany(
      Array.from({ length: COUNT }, (_, index) => exampleEvent('job.run.started', job, 9_000 + index)),
    );
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ attempt_count }) => attempt_count > 0)).toHaveLength(COUNT);
    }, PATIENCE);
    await loseTheQueue();
    harness.receiver.respondWith(200);
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(COUNT);
      expect(Math.max(...rows.map(({ attempt_count }) => attempt_count))).toBeLessThanOrEqual(4);
    }, PATIENCE);
  }, 150_000);
});
