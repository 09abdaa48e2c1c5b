import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, seedSubscription } from '@runhook/testing';
import { recordAttempts } from '../src/record/attempts.ts';
import { loadPendingDeliveries } from '../src/record/deliveries.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf } from './log-rows.ts';

/** Tests what the record gives the retry of an interrupted job; the crash itself is tested in e2e. */
describe.each(oneQueueBackend())('after an interruption, on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  async function committedEvent() {
    const { id, name } = await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const event = exampleEvent('job.run.started', harness.account.jobs[0] as never);
    const deliveryId = deliveryIdFor(event.eventId, id);
    const rows = [
      {
        event,
        version: null,
        deliveries: [{ id: deliveryId, subscriptionId: id, webhookName: name, isDeferred: false }],
      },
    ];
    return { event, deliveryId, rows };
  }

  test('an event is claimed once, however often its fan-out is committed', async () => {
    const { rows } = await committedEvent();
    expect(await commitResults(harness.database.pool, rows)).toEqual(['claimed']);
    expect(await commitResults(harness.database.pool, rows)).toEqual(['duplicate']);
    const other = [{ ...rows[0], deliveries: [] }] as unknown as typeof rows;
    expect(await commitResults(harness.database.pool, other)).toEqual(['duplicate']);
    expect(await deliveriesOf(harness.database)).toHaveLength(1);
  });

  test('one of eight concurrent commits of an event claims it', async () => {
    const { rows } = await committedEvent();
    const claims = await Promise.all(
      Array.from({ length: 8 }, () => commitResults(harness.database.pool, rows)),
    );
    expect(claims.filter(([result]) => result === 'claimed')).toHaveLength(1);
    expect(await deliveriesOf(harness.database)).toHaveLength(1);
  });

  test('a queued delivery with a logged attempt is not attempted again before its next due time', async () => {
    const { deliveryId, rows, event } = await committedEvent();
    await commitResults(harness.database.pool, rows);
    await recordAttempts(harness.database.pool, [
      {
        deliveryId,
        accountId: event.accountId,
        day: new Date().toISOString().slice(0, 10),
        number: 1,
        trigger: 'automatic',
        startedAt: new Date(),
        durationMs: 5,
        httpStatusCode: 500,
        error: { code: 'unsuccessful_status', message: 'x' },
        requestHeaders: {},
        response: null,
        timings: null,
        status: 'pending',
        reason: null,
        nextDelayMs: 2_500,
      },
    ]);
    const [pending] = await loadPendingDeliveries(harness.database.pool, event, 60_000);
    expect(pending).toMatchObject({ id: deliveryId, cycle: 0, attemptCount: 1 });
    expect(pending?.delayMs).toBeLessThanOrEqual(2_500);
    const { rows: due } = await harness.database.pool.query<{ ms: number }>(
      'SELECT (extract(epoch FROM next_attempt_at) * 1000)::float8 AS ms FROM deliveries',
    );

    await harness.startDispatcher();
    const queue = createQueueBackend(harness.queueUrl).createQueue<object>(WEBHOOK_DELIVERIES);
    await queue.add('deliver', { deliveryId, cycle: 0 }, { attempts: 1 });
    await harness.receiver.waitFor(1);
    // The clocks of the database and a dispatcher may differ by up to a second.
    expect(harness.receiver.requests[0]?.receivedAt).toBeGreaterThanOrEqual(
      (due[0]?.ms ?? Number.NaN) - 1_000,
    );
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'delivered', attempt_count: 2 }]);
    });
    await queue.close();
  });

  test('a delivery without attempts is resumed only after its first attempt must have ended', async () => {
    const { rows, event } = await committedEvent();
    const { pool } = harness.database;
    await commitResults(pool, rows);
    const [begun] = await loadPendingDeliveries(pool, event, 60_000);
    expect(begun?.delayMs).toBeGreaterThan(30_000);
    expect(begun?.delayMs).toBeLessThanOrEqual(60_000);
    await pool.query('UPDATE deliveries SET created_at = $1', [new Date(Date.now() - 61_000)]);
    expect(await loadPendingDeliveries(pool, event, 60_000)).toMatchObject([{ delayMs: 0 }]);
  });

  test('a queued delivery that was delivered meanwhile is not sent again', async () => {
    const { deliveryId, rows } = await committedEvent();
    await commitResults(harness.database.pool, rows);
    await harness.database.pool.query(`UPDATE deliveries SET status = 'delivered'`);
    const queue = createQueueBackend(harness.queueUrl).createQueue<object>(WEBHOOK_DELIVERIES);
    await queue.add('deliver', { deliveryId, cycle: 0 }, { removeOnComplete: true });
    await harness.startDispatcher();
    await eventually(async () => {
      expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    });
    expect(harness.receiver.requests).toHaveLength(0);
    await queue.close();
  });
});
