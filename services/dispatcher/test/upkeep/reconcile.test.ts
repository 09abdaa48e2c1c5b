import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor } from '@runhook/contract';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
} from '@runhook/queue';
import { eventually, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import { commitFanOut } from '../../src/record/commit-fan-out.ts';
import { reconcile } from '../../src/upkeep/reconcile.ts';
import { type Harness, openHarness } from '../harness.ts';
import { deliveriesOf } from '../log-rows.ts';

describe.each(queueBackends())('the reconciler, on $name', (backend) => {
  let harness: Harness;
  let events: EventQueue;
  let deliveries: DeliveryQueue;
  beforeEach(async () => {
    harness = await openHarness(backend);
    const queueBackend = createQueueBackend(harness.queueUrl);
    events = openEventQueue(queueBackend, () => undefined);
    deliveries = openDeliveryQueue(queueBackend, () => undefined);
  });
  afterEach(async () => {
    await Promise.all([events.close(), deliveries.close()]);
    await harness.close();
  });

  const run = () =>
    reconcile({
      pool: harness.database.pool,
      events,
      deliveries,
      retryPolicy: { retriesMax: 5, baseDelayMs: 20 },
      graceMs: 0,
    });

  /** Deliveries in the record whose queue jobs never were, or are no more. */
  async function lostDeliveries(count: number) {
    const { id, name } = await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const rows = Array.from({ length: count }, (_, index) => {
      const event = exampleEvent('job.run.started', harness.account.jobs[0] as never, 8_000 + index);
      return {
        event,
        version: null,
        deliveries: [
          { id: deliveryIdFor(event.eventId, id), subscriptionId: id, webhookName: name, isParked: false },
        ],
      };
    });
    await commitFanOut(harness.database.pool, rows);
    return rows;
  }

  test('puts back what is pending and gone from the queue, and nothing that is there', async () => {
    const rows = await lostDeliveries(700);
    const held = rows[0]?.deliveries[0]?.id ?? '';
    await deliveries.add([{ deliveryId: held, cycle: 0, delayMs: 3_600_000, attemptsLeft: 6 }]);
    expect(await run()).toEqual({ events: 0, deliveries: 699 });
    expect(await run()).toEqual({ events: 0, deliveries: 0 });
    expect(await deliveries.counts()).toMatchObject({ waiting: 699, delayed: 1 });
  });

  test('leaves a first attempt to the event’s own job while the queue has it', async () => {
    const [row] = await lostDeliveries(1);
    if (row) await events.add([row.event]);
    expect(await run()).toEqual({ events: 0, deliveries: 0 });
  });

  test('leaves a retry alone until its time has passed', async () => {
    await lostDeliveries(1);
    await harness.database.pool.query(
      `UPDATE deliveries SET attempt_count = 1, next_attempt_at = now() + interval '1 hour'`,
    );
    expect(await run()).toEqual({ events: 0, deliveries: 0 });
  });

  test('gives what it puts back the attempts it has left', async () => {
    await lostDeliveries(1);
    await harness.database.pool.query('UPDATE deliveries SET attempt_count = 4');
    harness.receiver.respondWith(500);
    // Before the dispatcher, whose own reconciler would have the lock at times.
    await run();
    await harness.startDispatcher();
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'failed', attempt_count: 6 }]);
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('puts back an event that was committed and relayed, and lost before its fan-out', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const event = exampleEvent('job.run.started', harness.account.jobs[0] as never);
    await harness.database.pool.query(
      `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
       VALUES ((now() AT TIME ZONE 'UTC')::date, $1, $2, $3, $4, $5)`,
      [event.eventId, event.accountId, event.eventType, event.timestamp, JSON.stringify(event.data)],
    );
    expect(await run()).toEqual({ events: 1, deliveries: 0 });
    await harness.startDispatcher();
    const [request] = await harness.receiver.waitFor(1);
    expect(request?.headers['webhook-id']).toBe(event.eventId);
    // The dispatcher's own reconciler may have the turn.
    await eventually(async () => expect(await run()).toEqual({ events: 0, deliveries: 0 }));
  });

  test('runs once at a time: another dispatcher that comes meanwhile does nothing', async () => {
    await lostDeliveries(50);
    const results = await Promise.all([run(), run(), run(), run()]);
    const putBack = results.map((result) => result?.deliveries ?? 0);
    expect(putBack.reduce((sum, count) => sum + count, 0)).toBe(50);
  });

  test('runs by itself in the dispatcher, on the schedule that it keeps', async () => {
    const { port } = await harness.startDispatcher({ deliveryTimeoutMs: 100 });
    await eventually(
      async () => {
        const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
        const lastRun = /runhook_reconciler_last_run_timestamp_seconds\{[^}]*\} (\S+)/.exec(metrics)?.[1];
        expect(Number(lastRun)).toBeGreaterThan(0);
      },
      { timeoutMs: 90_000 },
    );
  });
});
