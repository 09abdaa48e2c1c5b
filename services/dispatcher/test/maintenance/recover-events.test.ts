import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import { createQueueBackend, type DeliveryQueue, openDeliveryQueue, openEventQueue } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, seedSubscription } from '@runhook/testing';
import { reconcile } from '../../src/maintenance/reconcile.ts';
import { commitNextPage, recover } from '../../src/maintenance/recover.ts';
import { type Harness, openHarness } from '../harness.ts';
import { attemptsOf, commitResults, deliveriesOf, insertUndispatched } from '../log-rows.ts';

const retryPolicy = { retriesMax: 5, baseDelayMs: 20 };

describe.each(oneQueueBackend())('a recovery of events, on $name', (backend) => {
  let harness: Harness;
  let deliveries: DeliveryQueue;
  let subscription: { id: string; name: string };
  /** Errors of passes. */
  let errors: unknown[];
  beforeEach(async () => {
    errors = [];
    harness = await openHarness(backend);
    deliveries = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    const { database, account, receiver } = harness;
    subscription = await seedSubscription(database, { accountId: account.id, clientUrl: receiver.url });
  });
  afterEach(async () => {
    await deliveries.close();
    await harness.close();
    expect(errors).toEqual([]);
  });

  const query = (sql: string, values: unknown[] = []) => harness.database.pool.query(sql, values);
  const runPass = () =>
    recover(
      { pool: harness.database.pool, deliveries, retryPolicy, quarantine: harness.quarantine },
      (error) => errors.push(error),
    );

  /** Commits dispatched events without deliveries, recorded two hours ago. */
  async function insertEvents(count: number, eventType: JobRunEvent['eventType'] = 'job.run.started') {
    const events = Array.from({ length: count }, (_, index) =>
      exampleEvent(eventType, harness.account.jobs[0] as never, 8_000 + index),
    );
    const commits = events.map((event) => ({ event, version: null, deliveries: [] }));
    await commitResults(harness.database.pool, commits);
    const ids = events.map(({ eventId }) => eventId);
    await query(`UPDATE events SET created_at = now() - interval '2 hours' WHERE id = ANY ($1)`, [ids]);
    return events;
  }

  /** Commits an event with a delivery that ended an hour ago. */
  async function insertEnded(status: string, attempts: number): Promise<string> {
    const event = exampleEvent('job.run.started', harness.account.jobs[0] as never);
    const id = deliveryIdFor(event.eventId, subscription.id);
    const delivery = { id, subscriptionId: subscription.id, webhookName: 'The old name', isDeferred: false };
    await commitResults(harness.database.pool, [{ event, version: null, deliveries: [delivery] }]);
    await query(`UPDATE events SET created_at = now() - interval '2 hours' WHERE id = $1`, [event.eventId]);
    await query(
      `UPDATE deliveries SET status = $2, attempt_count = $3, next_attempt_at = NULL,
         completed_at = now() - interval '1 hour', http_status_code = 200, duration_ms = 5,
         format = CASE $2 WHEN 'delivered' THEN 'slack' END,
         started_at = CASE $2 WHEN 'delivered' THEN now() END,
         request_headers = CASE $2 WHEN 'delivered' THEN '{}'::json END
       WHERE id = $1`,
      [id, status, attempts],
    );
    return id;
  }

  /** Creates a recovery of the last three hours, as management does. */
  async function begin(include: 'unsent' | 'all', resendDelivered = false): Promise<string> {
    const id = createId('recovery');
    await query(
      `INSERT INTO recoveries (id, subscription_id, status, since, until, include, resend_delivered, total_count)
       VALUES ($1, $2, 'running', now() - interval '3 hours', now(), $3, $4, 0)`,
      [id, subscription.id, include, resendDelivered],
    );
    return id;
  }

  const recoveryOf = async (id: string) =>
    (await query('SELECT * FROM recoveries WHERE id = $1', [id])).rows[0];
  const rowsOf = async () => new Map((await deliveriesOf(harness.database)).map((row) => [row.id, row]));

  test('sends 250 events that have no delivery once each, in three passes', async () => {
    const events = await insertEvents(250);
    const id = await begin('unsent');
    for (const queuedDeliveries of [100, 100, 50])
      expect(await runPass()).toEqual({ queuedDeliveries, cancelledRecoveries: 0 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 250 });
    await harness.startDispatcher();
    await harness.receiver.waitFor(250, { timeoutMs: 60_000 });
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(250);
    });
    const ids = harness.receiver.requests.map(({ body }) => JSON.parse(String(body)).eventId);
    expect(ids).toHaveLength(250);
    expect(new Set(ids)).toEqual(new Set(events.map(({ eventId }) => eventId)));
  });

  test('inserts a delivery with the id and day of its event, by the current subscription', async () => {
    const [event] = await insertEvents(1);
    const { eventId = '', data } = event ?? {};
    await query(`UPDATE subscriptions SET name = 'The new name'`);
    const id = await begin('unsent');
    await runPass();
    const { rows } = await query('SELECT *, day::text, run_id::text, job_id::text FROM deliveries');
    expect(rows).toMatchObject([
      {
        id: deliveryIdFor(eventId, subscription.id),
        day: idDay('event', eventId),
        subscription_id: subscription.id,
        webhook_name: 'The new name',
        event_id: eventId,
        event_type: 'job.run.started',
        run_id: data?.runId,
        job_id: data?.jobId,
        ...{ status: 'pending', trigger: 'manual', cycle: 0, attempt_count: 0, recovery_id: id },
      },
    ]);
  });

  test('skips events that do not match the current subscription, and those that have a delivery', async () => {
    await query(`UPDATE subscriptions SET event_types = '{job.run.errored,job.run.started}'`);
    await insertEvents(2, 'job.run.completed');
    const [errored] = await insertEvents(1, 'job.run.errored');
    await insertEnded('failed', 6);
    await insertEnded('delivered', 1);
    await insertEnded('cancelled', 2);
    const unattempted = await insertEnded('cancelled', 0);
    const id = await begin('unsent');
    expect(await runPass()).toEqual({ queuedDeliveries: 2, cancelledRecoveries: 0 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 2 });
    const pending = [...(await rowsOf()).values()].filter(({ status }) => status === 'pending');
    const expected = [deliveryIdFor(errored?.eventId ?? '', subscription.id), unattempted];
    expect(pending.map((row) => row.id).sort()).toEqual(expected.sort());
  });

  test('of all events continues failed and cancelled deliveries, and delivered ones only again', async () => {
    const failed = await insertEnded('failed', 6);
    const cancelled = await insertEnded('cancelled', 2);
    const delivered = await insertEnded('delivered', 1);
    await insertEvents(1);
    await begin('all');
    expect(await runPass()).toMatchObject({ queuedDeliveries: 3 });
    const rows = await rowsOf();
    expect(rows.get(failed)).toMatchObject({ status: 'pending', cycle: 6, trigger: 'manual' });
    expect(rows.get(cancelled)).toMatchObject({ status: 'pending', cycle: 2 });
    expect(rows.get(delivered)).toMatchObject({ status: 'delivered' });
    await begin('all', true);
    expect(await runPass()).toMatchObject({ queuedDeliveries: 1 });
    expect((await rowsOf()).get(delivered)).toMatchObject({
      status: 'pending',
      cycle: 1,
      started_at: null,
      format: null,
    });
    expect(await attemptsOf(harness.database, delivered)).toMatchObject([
      { number: 1, trigger: 'automatic', http_status_code: 200, duration_ms: 5 },
    ]);
  });

  test('leaves undispatched events to their fan-out, and waits for recent ones', async () => {
    const events = await insertEvents(3);
    const [first, waiting, last] = events.map(({ eventId }) => eventId);
    const setAge = (eventId: string | undefined, age: string) =>
      query('UPDATE events SET created_at = now() - $2::interval WHERE id = $1', [eventId, age]);
    const late = exampleEvent('job.run.started', harness.account.jobs[0] as never);
    await insertUndispatched(harness.database, late);
    await setAge(late.eventId, '2 hours');
    await setAge(first, '50 s');
    await setAge(waiting, '40 s');
    await setAge(last, '30 s');
    await query(
      'INSERT INTO undispatched_events (day, event_id, account_id) SELECT day, id, account_id FROM events WHERE id = $1',
      [waiting],
    );
    const id = await begin('unsent');
    expect(await runPass()).toMatchObject({ queuedDeliveries: 1 });
    expect(await runPass()).toMatchObject({ queuedDeliveries: 0 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'running' });
    await query('DELETE FROM undispatched_events WHERE event_id = $1', [waiting]);
    expect(await runPass()).toMatchObject({ queuedDeliveries: 2 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 3 });
    const rows = await deliveriesOf(harness.database);
    expect(rows.map(({ event_id }) => event_id).sort()).toEqual([first, waiting, last].sort());
  });

  test('loses and repeats no event after a crash between the commit of a pass and the addition of its jobs', async () => {
    await insertEvents(120);
    const id = await begin('unsent');
    const { pool } = harness.database;
    expect((await commitNextPage(pool, id)).deliveries).toHaveLength(100);
    expect(await deliveries.counts()).toMatchObject({ waiting: 0 });
    expect(await runPass()).toEqual({ queuedDeliveries: 20, cancelledRecoveries: 0 });
    const events = openEventQueue(createQueueBackend(harness.queueUrl), () => undefined);
    const { quarantine } = harness;
    const graces = { graceMs: 0, eventGraceMs: 0 };
    const found = await reconcile({ pool, events, deliveries, quarantine, retryPolicy, ...graces });
    await events.close();
    expect(found).toEqual({ event: 0, delivery: 100 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 120 });
    await harness.startDispatcher();
    await harness.receiver.waitFor(120, { timeoutMs: 60_000 });
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(120);
    });
    expect(harness.receiver.requests).toHaveLength(120);
  });

  test('waits while the lane of its subscription is full', async () => {
    await insertEvents(1);
    const id = await begin('unsent');
    await query('UPDATE subscriptions SET lane_full_since = now()');
    expect(await runPass()).toEqual({ queuedDeliveries: 0, cancelledRecoveries: 0 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'running' });
    await query('UPDATE subscriptions SET lane_full_since = NULL');
    expect(await runPass()).toMatchObject({ queuedDeliveries: 1 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done' });
  });

  test('reads events beyond 4 MB in the next pass', async () => {
    await insertEvents(12);
    const set = `jsonb_set(data::jsonb, '{message}', to_jsonb(repeat('x', 500000)))`;
    await query(`UPDATE events SET data = (${set})::json`);
    const id = await begin('unsent');
    expect(await runPass()).toMatchObject({ queuedDeliveries: 7 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'running' });
    expect(await runPass()).toMatchObject({ queuedDeliveries: 5 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 12 });
  });

  test('reads long windows in pages, and sends events of ids of another day in the partition of that day', async () => {
    await insertEvents(1_500, 'job.run.completed');
    await query(`UPDATE subscriptions SET event_types = '{job.run.started}'`);
    const oldId = createId('event', Date.now() - 5 * 86_400_000);
    const old = { ...exampleEvent('job.run.started', harness.account.jobs[0] as never), eventId: oldId };
    await commitResults(harness.database.pool, [{ event: old, version: null, deliveries: [] }]);
    const id = await begin('unsent');
    expect(await runPass()).toMatchObject({ queuedDeliveries: 0 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'running' });
    expect(await runPass()).toMatchObject({ queuedDeliveries: 1 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done' });
    const { rows } = await query('SELECT day::text, event_id FROM deliveries');
    expect(rows).toEqual([{ day: idDay('event', oldId), event_id: oldId }]);
  });
});
