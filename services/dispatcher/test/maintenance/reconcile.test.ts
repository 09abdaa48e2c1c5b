import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, JOB_RUN_EVENTS } from '@runhook/contract';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
} from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, seedSubscription } from '@runhook/testing';
import { type ReconcileDependencies, reconcile } from '../../src/maintenance/reconcile.ts';
import { type Harness, openHarness } from '../harness.ts';
import { commitResults, deliveriesOf, insertUndispatched } from '../log-rows.ts';

describe.each(oneQueueBackend())('the reconciler, on $name', (backend) => {
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

  const run = (changed: Partial<ReconcileDependencies> = {}) =>
    reconcile({
      pool: harness.database.pool,
      events,
      deliveries,
      quarantine: harness.quarantine,
      retryPolicy: { retriesMax: 5, baseDelayMs: 20 },
      graceMs: 0,
      eventGraceMs: 0,
      pageSize: 1_000,
      ...changed,
    });

  /** Inserts pending deliveries after one attempt, each overdue by one second more than the next. Returns their ids. */
  async function overdue(count: number): Promise<string[]> {
    const { rows } = await harness.database.pool.query<{ id: string }>(
      `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
         attempt_count, next_attempt_at)
       SELECT (now() AT TIME ZONE 'UTC')::date, 'wdl_' || n, $2, 'wsu_1', 'wev_' || n, 'job.run.started', 1, n, 'a hook', 1,
         now() - interval '1 day' + n * interval '1 second'
       FROM generate_series(1, $1::int) AS n RETURNING id`,
      [count, harness.account.id],
    );
    return rows.map(({ id }) => id);
  }

  /** Inserts pending deliveries without queue jobs. */
  async function insertLostDeliveries(count: number, isDeferred = false) {
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
          { id: deliveryIdFor(event.eventId, id), subscriptionId: id, webhookName: name, isDeferred },
        ],
      };
    });
    await commitResults(harness.database.pool, rows);
    return rows;
  }

  test('queues pending deliveries again that are not in the queue, and no others', async () => {
    const rows = await insertLostDeliveries(700);
    const queuedId = rows[0]?.deliveries[0]?.id ?? '';
    await deliveries.add([
      { deliveryId: queuedId, cycle: 0, accountId: harness.account.id, delayMs: 3_600_000, attemptsLeft: 6 },
    ]);
    expect(await run()).toEqual({ event: 0, delivery: 699 });
    expect(await run()).toEqual({ event: 0, delivery: 0 });
    expect(await deliveries.counts()).toMatchObject({ waiting: 699, delayed: 1 });
  });

  test('leaves a first attempt to the job of its event while the queue has that job', async () => {
    const [row] = await insertLostDeliveries(1);
    if (row) await events.add([row.event]);
    expect(await run()).toEqual({ event: 0, delivery: 0 });
  });

  test('queues all lost items again in one pass', async () => {
    await overdue(2_500);
    expect(await run({ checkedWithoutLossMax: 1_000 })).toEqual({ event: 0, delivery: 2_500 });
    expect(await run()).toEqual({ event: 0, delivery: 0 });
  });

  test('finds a lost event that begins a page and has the id of the last event of the previous page, of another account', async () => {
    const { pool } = harness.database;
    const template = exampleEvent('job.run.started', harness.account.jobs[0] as never);
    await insertUndispatched(harness.database, template);
    // One row more than a page; the last two have the same id.
    await pool.query(
      `WITH event AS (
         INSERT INTO events (day, id, account_id, event_type, "timestamp", data, run_id)
         SELECT e.day, left(e.id, -4) || lpad(least(n, 999)::text, 4, '0'), CASE n WHEN 1000 THEN 2 ELSE 1 END,
           e.event_type, e."timestamp", e.data, e.run_id
         FROM events e, generate_series(0, 1000) AS n RETURNING day, id, account_id)
       INSERT INTO undispatched_events (day, event_id, account_id, created_at)
       SELECT day, id, account_id, now() - interval '1 hour' FROM event`,
    );
    await pool.query('DELETE FROM undispatched_events WHERE event_id = $1', [template.eventId]);
    expect(await run()).toEqual({ event: 1_001, delivery: 0 });
    expect(await run()).toEqual({ event: 0, delivery: 0 });
  });

  test('finds a lost item beyond the limit of a pass in the next pass of another dispatcher', async () => {
    const ids = await overdue(2_500);
    const result = () => run({ checkedWithoutLossMax: 2_000 });
    const lost = ids.at(-1);
    await deliveries.add(
      ids
        .filter((id) => id !== lost)
        .map((deliveryId) => ({
          deliveryId,
          cycle: 0,
          accountId: harness.account.id,
          delayMs: 3_600_000,
          attemptsLeft: 5,
        })),
    );
    expect(await result()).toEqual({ event: 0, delivery: 0 });
    expect(await result()).toEqual({ event: 0, delivery: 1 });
    // The pass reached the end, so the next one starts at the beginning.
    expect((await harness.database.pool.query('SELECT FROM reconciler_cursors')).rowCount).toBe(0);
  });

  test('replaces a lone surrogate in the text of a row of a previous release when it queues the event again', async () => {
    const event = exampleEvent('job.run.started', harness.account.jobs[0] as never);
    await insertUndispatched(harness.database, {
      ...event,
      data: { ...event.data, runReason: 'cut \ud83d' },
    } as never);
    expect(await run()).toEqual({ event: 1, delivery: 0 });
    const queue = createQueueBackend(harness.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    const waiting = await queue.getWaiting().finally(() => queue.close());
    expect(waiting).toMatchObject([{ data: { data: { runReason: 'cut \ufffd' } } }]);
  });

  test('completes the scan of deliveries although the scan of events fails, and throws the error of the latter', async () => {
    await overdue(10);
    await harness.database.pool.query(`ALTER TABLE undispatched_events RENAME COLUMN created_at TO mislaid`);
    const requeued: unknown[] = [];
    const onRequeued = (...found: unknown[]) => void requeued.push(found);
    await expect(run({ onRequeued })).rejects.toMatchObject({ code: '42703' });
    expect(requeued).toEqual([['delivery', 10]]);
  });

  test('ends after the current page when its dispatcher stops, and another dispatcher continues there', async () => {
    await overdue(2_500);
    const stop = new AbortController();
    expect(await run({ stopping: stop.signal, onRequeued: () => stop.abort() })).toEqual({
      event: 0,
      delivery: 1_000,
    });
    let checkedPages = 0;
    const findQueued: typeof deliveries.findQueued = (page) => {
      checkedPages += page.length;
      return deliveries.findQueued(page);
    };
    expect(await run({ deliveries: { ...deliveries, findQueued: findQueued } })).toEqual({
      event: 0,
      delivery: 1_500,
    });
    expect(checkedPages).toBe(1_500);
  });

  test('leaves recently overdue deliveries to the active job of their lane, but not older ones', async () => {
    const [row] = await insertLostDeliveries(1, true);
    let respond = () => {};
    const responded = new Promise<{ status: number }>((resolve) => {
      respond = () => resolve({ status: 200 });
    });
    harness.receiver.respondWith(() => responded);
    await harness.startDispatcher();
    await deliveries.wakeLanes([
      { subscriptionId: row?.deliveries[0]?.subscriptionId ?? '', accountId: harness.account.id },
    ]);
    await harness.receiver.waitFor(1);
    const { pool } = harness.database;
    await pool.query(`UPDATE deliveries SET next_attempt_at = now() - interval '10 seconds'`);
    expect(await run()).toEqual({ event: 0, delivery: 0 });
    await pool.query(`UPDATE deliveries SET next_attempt_at = now() - interval '2 minutes'`);
    // The dispatcher's own pass may find the delivery before this one does.
    await eventually(async () => {
      await run();
      expect(harness.receiver.requests).toHaveLength(2);
    });
    respond();
    await eventually(async () =>
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'delivered' }]),
    );
  });

  test('ignores a retry until it is overdue', async () => {
    await insertLostDeliveries(1);
    await harness.database.pool.query(
      `UPDATE deliveries SET attempt_count = 1, next_attempt_at = now() + interval '1 hour'`,
    );
    expect(await run()).toEqual({ event: 0, delivery: 0 });
  });

  test('queues a delivery again with its remaining attempts', async () => {
    await insertLostDeliveries(1);
    await harness.database.pool.query('UPDATE deliveries SET attempt_count = 4');
    harness.receiver.respondWith(500);
    // Run before the dispatcher starts, whose own reconciler might queue it first.
    await run();
    await harness.startDispatcher();
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'failed', attempt_count: 6 }]);
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('queues an event again that is committed, not fanned out and not in the queue', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const event = exampleEvent('job.run.started', harness.account.jobs[0] as never);
    await insertUndispatched(harness.database, event);
    expect(await run()).toEqual({ event: 1, delivery: 0 });
    await harness.startDispatcher();
    const [request] = await harness.receiver.waitFor(1);
    expect(request?.headers['webhook-id']).toBe(event.eventId);
    // The dispatcher's own reconciler may run first.
    await eventually(async () => expect(await run()).toEqual({ event: 0, delivery: 0 }));
  });

  test('queues lost events again whose commit is in the future, because the clock of the database was ahead', async () => {
    const { pool } = harness.database;
    const lost = Array.from({ length: 80 }, (_, run) =>
      exampleEvent('job.run.started', harness.account.jobs[0] as never, run),
    );
    for (const event of lost) await insertUndispatched(harness.database, event);
    await pool.query(`UPDATE undispatched_events SET created_at = now() + interval '1 hour'`);
    expect(await run()).toEqual({ event: 80, delivery: 0 });
    expect(await run()).toEqual({ event: 0, delivery: 0 });
    expect(await events.counts()).toMatchObject({ waiting: 80 });
  });

  test('adds each job once when several dispatchers process the same page', async () => {
    await insertLostDeliveries(50);
    await Promise.all([run(), run(), run(), run()]);
    expect(await deliveries.counts()).toMatchObject({ waiting: 50, delayed: 0 });
    expect(await run()).toEqual({ event: 0, delivery: 0 });
  });

  test('ends its pass when another dispatcher has moved the position that it read', async () => {
    await overdue(2_500);
    const stop = new AbortController();
    const otherPass = () => run({ stopping: stop.signal, onRequeued: () => stop.abort() });
    let pages = 0;
    const findQueued: typeof deliveries.findQueued = async (page) => {
      pages += 1;
      if (pages === 1) expect(await otherPass()).toEqual({ event: 0, delivery: 1_000 });
      return await deliveries.findQueued(page);
    };
    expect(await run({ deliveries: { ...deliveries, findQueued: findQueued } })).toEqual({
      event: 0,
      delivery: 0,
    });
    expect(pages).toBe(1);
    expect(await run()).toEqual({ event: 0, delivery: 1_500 });
  });

  test('has no open transaction while it calls the queue', async () => {
    await overdue(1);
    const { pool } = harness.database;
    const open: number[] = [];
    const findQueued: typeof deliveries.findQueued = async (page) => {
      const { rows } = await pool.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM pg_stat_activity
         WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
      );
      open.push(rows[0]?.count ?? -1);
      return await deliveries.findQueued(page);
    };
    await run({ deliveries: { ...deliveries, findQueued: findQueued } });
    expect(open).toEqual([0]);
  });

  test('runs automatically in the dispatcher on its schedule', async () => {
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
