import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, type EventType, type JobRunEvent } from '@runhook/contract';
import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import {
  countRowsRead,
  eventually,
  exampleEvent,
  oneQueueBackend,
  openExplainedConnection,
  type ReceivedRequest,
} from '@runhook/testing';
import { reconcileLanes } from '../src/maintenance/lanes.ts';
import { limitPending } from '../src/maintenance/pending-limit.ts';
import { claimDeferred, hasDeferred, lanesWithDeferred } from '../src/record/deferred.ts';
import { loadUndispatchedOfRuns } from '../src/record/run-order.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, insertUndispatched } from './log-rows.ts';

const [STARTED, ERRORED, COMPLETED] = ['job.run.started', 'job.run.errored', 'job.run.completed'] as const;

describe.each(oneQueueBackend())('ordered webhooks, on $name', (backend) => {
  let harness: Harness;
  let subscription: { id: string; name: string };
  const closers: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    harness = await openHarness(backend);
    subscription = await harness.subscribe('/ordered');
    await sql('UPDATE subscriptions SET ordered = true');
  });
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
    await harness.close();
  });

  const sql = async <Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await harness.database.pool.query(text, values)).rows;

  const eventOf = (type: EventType, runId: number) =>
    exampleEvent(type, harness.account.jobs[0] as never, runId);

  const typeAndRun = ({ body }: Pick<ReceivedRequest, 'body'>) => {
    const { eventType, data } = JSON.parse(body.toString()) as JobRunEvent;
    return `${eventType} ${data.runId}`;
  };
  const arrivals = () => harness.receiver.requests.map(typeAndRun);

  interface Row {
    event_type: EventType;
    run_id: string;
    status: string;
    is_waiting: boolean;
    waits_for_event_type: EventType | null;
    out_of_order: boolean | null;
  }
  const rowOf = async (type: EventType, runId: number) =>
    (
      await sql<Row>(
        `SELECT *, deferred_at = 'infinity' IS TRUE AS is_waiting FROM deliveries WHERE event_type = $1 AND run_id = $2`,
        [type, runId],
      )
    )[0];

  /** Inserts deliveries as fan-out commits them, without a job of their lane. */
  async function insertDeferred(events: readonly JobRunEvent[]): Promise<string[]> {
    const { id: subscriptionId, name: webhookName } = subscription;
    const rows = events.map((event) => {
      const id = deliveryIdFor(event.eventId, subscriptionId);
      return { event, version: null, deliveries: [{ id, subscriptionId, webhookName, isDeferred: true }] };
    });
    await commitResults(harness.database.pool, rows);
    return rows.map(({ deliveries }) => deliveries[0]?.id ?? '');
  }

  const openQueue = () => {
    const queue = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    closers.push(() => queue.close());
    return queue;
  };
  const runLanesPass = () =>
    reconcileLanes({
      pool: harness.database.pool,
      deliveries: openQueue(),
      quarantine: harness.quarantine,
    });

  /** Inserts the row of run 1, whose start was reported. */
  const insertStartedRun = () =>
    sql(
      `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name, status, start_reported)
       VALUES ($1, 1, 1, 'x', 1, 'x', 1, 'x', 'Running', true)`,
      [harness.account.id],
    );

  test('the deliveries of a run wait for the retries of earlier ones, and those of another run do not', async () => {
    let failed = 0;
    harness.receiver.respondWith(async (request) => {
      if (typeAndRun(request) !== `${STARTED} 1` || failed > 0) return { status: 200 };
      failed += 1;
      // Run 2 ends while the first attempt of run 1 is in flight.
      await harness.receiver.waitFor((one) => typeAndRun(one) === `${COMPLETED} 2`);
      await eventually(async () =>
        expect(await rowOf(COMPLETED, 1)).toMatchObject({ is_waiting: true, waits_for_event_type: STARTED }),
      );
      return { status: 500 };
    });
    await harness.startDispatcher({ deliveryTimeoutMs: 60_000 });
    const events = [STARTED, ERRORED, COMPLETED].flatMap((type) => [eventOf(type, 1), eventOf(type, 2)]);
    for (const event of events) await harness.publisher.publish(event);
    await eventually(async () =>
      expect(await sql(`SELECT FROM deliveries WHERE status = 'delivered'`)).toHaveLength(6),
    );
    const ofRun = (runId: number) => arrivals().filter((one) => one.endsWith(` ${runId}`));
    expect(ofRun(1)).toEqual([`${STARTED} 1`, ...[STARTED, ERRORED, COMPLETED].map((type) => `${type} 1`)]);
    expect(ofRun(2)).toEqual([STARTED, ERRORED, COMPLETED].map((type) => `${type} 2`));
    expect(await sql('SELECT FROM deliveries WHERE out_of_order')).toEqual([]);
  });

  test('a delivery waits for an earlier event of its run that was reported and is not dispatched yet', async () => {
    const started = eventOf(STARTED, 1);
    await insertStartedRun();
    await insertUndispatched(harness.database, started);
    await harness.startDispatcher();
    await harness.publisher.publish(eventOf(COMPLETED, 1));
    // Another run whose start was not reported does not wait.
    await harness.publisher.publish(eventOf(COMPLETED, 2));
    await eventually(async () =>
      expect(await rowOf(COMPLETED, 1)).toMatchObject({ is_waiting: true, waits_for_event_type: STARTED }),
    );
    await harness.receiver.waitFor(1);
    expect(await runLanesPass()).toMatchObject({ released: 0 });
    await harness.publisher.publish(started);
    await harness.receiver.waitFor(3);
    expect(arrivals()).toEqual([`${COMPLETED} 2`, `${STARTED} 1`, `${COMPLETED} 1`]);
  });

  test('a delivery whose earlier event is cancelled at its fan-out is sent at once', async () => {
    const started = eventOf(STARTED, 1);
    await insertStartedRun();
    await insertUndispatched(harness.database, started);
    await harness.startDispatcher({ pendingDeliveriesPerAccount: 0 });
    await harness.publisher.publish(eventOf(COMPLETED, 1));
    await eventually(async () => expect(await rowOf(COMPLETED, 1)).toMatchObject({ is_waiting: true }));
    await sql('UPDATE subscriptions SET lane_full_since = now()');
    await harness.publisher.publish(started);
    await harness.receiver.waitFor(1);
    expect(arrivals()).toEqual([`${COMPLETED} 1`]);
    expect(await rowOf(STARTED, 1)).toMatchObject({ status: 'cancelled' });
  });

  test('no delivery waits for undispatched events that the webhook does not receive, or that cannot be read', async () => {
    const { pool } = harness.database;
    const [started, errored] = [eventOf(STARTED, 1), eventOf(ERRORED, 1)];
    await insertStartedRun();
    for (const event of [started, errored]) await insertUndispatched(harness.database, event);
    const undispatched = async () => {
      const lane = { subscriptionId: subscription.id, accountId: harness.account.id };
      const unrecorded = { withoutStarted: ['1'], withoutErrored: ['1'] };
      const events = await loadUndispatchedOfRuns(pool, { ...lane, ...unrecorded });
      return events?.map(({ eventId }) => eventId).sort() ?? null;
    };
    expect(await undispatched()).toEqual([started.eventId, errored.eventId].sort());
    await sql(`UPDATE subscriptions SET event_types = '{${ERRORED},${COMPLETED}}'`);
    expect(await undispatched()).toEqual([errored.eventId]);
    await sql(`UPDATE events SET data = '{}' WHERE id = $1`, [errored.eventId]);
    expect(await undispatched()).toEqual([]);
    await sql(`UPDATE subscriptions SET event_types = '{${COMPLETED}}'`);
    expect(await undispatched()).toBeNull();
  });

  test('an earlier event that is recorded after a later one was sent is sent at once and marked', async () => {
    await harness.startDispatcher();
    await harness.publisher.publish(eventOf(COMPLETED, 1));
    await harness.receiver.waitFor(1);
    await eventually(async () => expect(await rowOf(COMPLETED, 1)).toMatchObject({ status: 'delivered' }));
    await harness.publisher.publish(eventOf(STARTED, 1));
    await harness.receiver.waitFor(2);
    expect(await rowOf(STARTED, 1)).toMatchObject({ out_of_order: true });
    expect(await rowOf(COMPLETED, 1)).toMatchObject({ out_of_order: null });
  });

  test('a delivery that was redelivered or recovered does not wait, and none waits for it', async () => {
    const [started] = await insertDeferred([eventOf(STARTED, 1), eventOf(COMPLETED, 1), eventOf(STARTED, 2)]);
    await sql(
      `UPDATE deliveries SET trigger = 'manual', cycle = 1, attempt_count = 1
       WHERE (event_type, run_id) IN (VALUES ('${COMPLETED}', 1), ('${STARTED}', 2))`,
    );
    await sql(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now() + interval '1 hour' WHERE id = $1 OR run_id = 2`,
      [started],
    );
    await insertDeferred([eventOf(COMPLETED, 2)]);
    await harness.startDispatcher();
    await openQueue().wakeLanes([{ subscriptionId: subscription.id, accountId: harness.account.id }]);
    await harness.receiver.waitFor(2);
    expect(arrivals().sort()).toEqual([`${COMPLETED} 1`, `${COMPLETED} 2`]);
  });

  test('maintenance releases a delivery whose earlier one was cancelled, set aside, or whose webhook is no longer ordered', async () => {
    await insertDeferred([1, 2].flatMap((run) => [eventOf(STARTED, run), eventOf(COMPLETED, run)]));
    await sql(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now() + interval '1 hour' WHERE event_type = '${STARTED}'`,
    );
    await sql(
      `UPDATE deliveries d SET deferred_at = 'infinity', waits_for_event_id = p.event_id, waits_for_event_type = p.event_type
       FROM deliveries p WHERE p.run_id = d.run_id AND p.event_type = '${STARTED}' AND d.event_type = '${COMPLETED}'`,
    );
    expect(await runLanesPass()).toEqual({ waiting: 0, released: 0, expired: 0 });
    await sql(`UPDATE deliveries SET status = 'cancelled' WHERE event_type = '${STARTED}' AND run_id = 1`);
    expect(await runLanesPass()).toEqual({ waiting: 1, released: 1, expired: 0 });
    const [started] = await sql<{ id: string }>(
      `SELECT id FROM deliveries WHERE event_type = '${STARTED}' AND run_id = 2`,
    );
    const { id: accountId } = harness.account;
    await harness.quarantine.setAside([{ kind: 'delivery', accountId, key: started?.id ?? '', reason: 'x' }]);
    expect(await runLanesPass()).toMatchObject({ released: 1 });
    await sql(
      `UPDATE deliveries SET deferred_at = 'infinity' WHERE event_type = '${COMPLETED}' AND run_id = 2`,
    );
    await sql('DELETE FROM quarantined_items');
    expect(await runLanesPass()).toMatchObject({ released: 0 });
    await sql('UPDATE subscriptions SET ordered = false');
    expect(await runLanesPass()).toMatchObject({ released: 1 });
    await harness.startDispatcher();
    await harness.receiver.waitFor(2);
    expect(arrivals().sort()).toEqual([`${COMPLETED} 1`, `${COMPLETED} 2`]);
  });

  test('the 24 hours of a delivery begin when the last earlier one of its run has ended', async () => {
    await insertDeferred([1, 2, 3, 4].flatMap((run) => [eventOf(STARTED, run), eventOf(COMPLETED, run)]));
    await sql(
      `UPDATE deliveries SET deferred_at = now() - interval '30 hours' WHERE event_type = '${COMPLETED}'`,
    );
    await sql(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now() + interval '1 hour'
       WHERE event_type = '${STARTED}' AND run_id = 1`,
    );
    await sql(
      `UPDATE deliveries SET deferred_at = NULL, status = 'failed',
         completed_at = now() - CASE run_id WHEN 2 THEN interval '1 hour' ELSE interval '25 hours' END
       WHERE event_type = '${STARTED}' AND run_id > 1`,
    );
    await sql(`DELETE FROM deliveries WHERE event_type = '${STARTED}' AND run_id = 4`);
    expect(await runLanesPass()).toMatchObject({ expired: 2 });
    const statuses = await sql<Row>(
      `SELECT status FROM deliveries WHERE event_type = '${COMPLETED}' ORDER BY run_id`,
    );
    expect(statuses.map(({ status }) => status)).toEqual(['pending', 'pending', 'failed', 'failed']);
  });

  test('waiting deliveries count for the pending limit, and a lane passes over thousands of them by its index', async () => {
    const WAITING = 2_000;
    await insertDeferred(Array.from({ length: WAITING }, (_, run) => eventOf(COMPLETED, run + 1)));
    await sql(`UPDATE deliveries SET deferred_at = 'infinity', waits_for_event_id = event_id`);
    const { pool } = harness.database;
    const lane = { subscriptionId: subscription.id, accountId: harness.account.id };
    expect(await hasDeferred(pool, lane)).toBe(false);
    expect(await lanesWithDeferred(pool, '', 10)).toEqual([]);
    expect(await limitPending({ pool, pendingMax: WAITING - 1 })).toMatchObject({ filled: 1 });
    const connection = await openExplainedConnection(harness.databaseUrl);
    try {
      const claim = () =>
        claimDeferred(connection.pool, { ...lane, limit: 64, permitsMax: 1_000, attemptMs: 0 });
      expect(await claim()).toEqual([]);
      await insertDeferred([eventOf(STARTED, 9_999)]);
      const [explained] = await connection.explain(async () => expect(await claim()).toHaveLength(1));
      const rows = countRowsRead(explained?.plan as never, /^deliveries_/);
      if (!(rows < 10)) throw new Error(`${rows} rows of ${JSON.stringify(explained?.plan)}`);
    } finally {
      await connection.close();
    }
  });
});
