import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, deliveryJobId } from '@runhook/contract';
import { inTransaction, listQuarantined } from '@runhook/database';
import { createQueueBackend, type DeliveryQueue, openDeliveryQueue, openEventQueue } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, seedSubscription } from '@runhook/testing';
import { purge } from '../../src/maintenance/purge.ts';
import { reconcile } from '../../src/maintenance/reconcile.ts';
import { commitNextPage, recover } from '../../src/maintenance/recover.ts';
import { type Harness, openHarness } from '../harness.ts';
import { attemptsOf, commitResults, deliveriesOf } from '../log-rows.ts';

const retryPolicy = { retriesMax: 5, baseDelayMs: 20 };

interface Recovery {
  status: string;
  reason: string | null;
  total_count: number;
  recovered_count: number;
  completed_at: Date | null;
}

describe.each(oneQueueBackend())('a recovery, on $name', (backend) => {
  let harness: Harness;
  let deliveries: DeliveryQueue;
  let subscription: { id: string; name: string };
  /** Errors of passes. */
  let errors: unknown[];
  beforeEach(async () => {
    errors = [];
    harness = await openHarness(backend);
    deliveries = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    subscription = await newSubscription();
  });
  afterEach(async () => {
    await deliveries.close();
    await harness.close();
  });

  const query = (sql: string, values: unknown[] = []) => harness.database.pool.query(sql, values);
  const runPass = () =>
    recover(
      { pool: harness.database.pool, deliveries, retryPolicy, quarantine: harness.quarantine },
      (error) => errors.push(error),
    );
  const newSubscription = () =>
    seedSubscription(harness.database, { accountId: harness.account.id, clientUrl: harness.receiver.url });

  /** Inserts deliveries that ended an hour ago. */
  async function insertEnded(count: number, fields: { status?: string; attempts?: number } = {}) {
    const { status = 'failed', attempts = 6 } = fields;
    const { id, name } = subscription;
    const rows = Array.from({ length: count }, (_, index) => {
      const event = exampleEvent('job.run.started', harness.account.jobs[0] as never, 8_000 + index);
      const delivery = {
        id: deliveryIdFor(event.eventId, id),
        subscriptionId: id,
        webhookName: name,
        isDeferred: false,
      };
      return { event, version: null, deliveries: [delivery] };
    });
    await commitResults(harness.database.pool, rows);
    const ids = rows.flatMap(({ deliveries: [delivery] }) => delivery?.id ?? []);
    await query(
      `UPDATE deliveries SET status = $2, reason = 'why', attempt_count = $3, next_attempt_at = NULL,
         created_at = now() - interval '2 hours', completed_at = now() - interval '1 hour' WHERE id = ANY ($1)`,
      [ids, status, attempts],
    );
    return ids;
  }

  /** Creates a recovery of the last three hours, as management does. */
  async function begin(totalCount: number, status = 'failed'): Promise<string> {
    const id = createId('recovery');
    await query(
      `INSERT INTO recoveries (id, subscription_id, status, since, until, delivery_status, total_count)
       VALUES ($1, $2, 'running', now() - interval '3 hours', now(), $3, $4)`,
      [id, subscription.id, status, totalCount],
    );
    return id;
  }

  async function recoveryOf(id: string): Promise<Recovery> {
    return (await query('SELECT * FROM recoveries WHERE id = $1', [id])).rows[0];
  }

  test('redelivers 250 failed deliveries in three passes, and all of them arrive', async () => {
    await insertEnded(250);
    const id = await begin(250);
    for (const queuedDeliveries of [100, 100, 50])
      expect(await runPass()).toEqual({ queuedDeliveries, cancelledRecoveries: 0 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 250 });
    await harness.startDispatcher();
    await harness.receiver.waitFor(250, { timeoutMs: 60_000 });
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(250);
      expect(rows.every(({ attempt_count }) => attempt_count === 7)).toBe(true);
    });
    expect(harness.receiver.requests).toHaveLength(250);
    expect(await recoveryOf(id)).toMatchObject({ total_count: 250, completed_at: expect.any(Date) });
  });

  test('is cancelled with the reason and set aside when PostgreSQL rejects one of its deliveries, and other recoveries continue', async () => {
    await insertEnded(1);
    const bad = await begin(1);
    await query(
      `ALTER TABLE deliveries ADD CONSTRAINT reject CHECK (subscription_id <> '${subscription.id}') NOT VALID`,
    );
    subscription = await newSubscription();
    await insertEnded(2);
    const good = await begin(2);
    expect(await runPass()).toEqual({ queuedDeliveries: 2, cancelledRecoveries: 1 });
    expect(await recoveryOf(good)).toMatchObject({ status: 'done', recovered_count: 2 });
    const reason = expect.stringMatching(/^23514: .*reject/);
    expect(await recoveryOf(bad)).toMatchObject({ status: 'cancelled', reason });
    const setAside = await listQuarantined(harness.database.pool, { limit: 10 });
    expect(setAside).toMatchObject([{ kind: 'recovery', key: bad, accountId: harness.account.id, reason }]);
  });

  test('continues automatically in the dispatcher', async () => {
    await insertEnded(150);
    const id = await begin(150);
    await harness.startDispatcher();
    await eventually(
      async () => expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 150 }),
      { timeoutMs: 60_000 },
    );
    await harness.receiver.waitFor(150, { timeoutMs: 60_000 });
  });

  test('starts a manual cycle for each delivery, with continued attempt numbers and all retries', async () => {
    const [deliveryId = ''] = await insertEnded(1);
    await begin(1);
    expect(await runPass()).toEqual({ queuedDeliveries: 1, cancelledRecoveries: 0 });
    const [row] = await deliveriesOf(harness.database);
    expect(row).toMatchObject({
      status: 'pending',
      reason: null,
      trigger: 'manual',
      cycle: 6,
      completed_at: null,
    });
    expect(await deliveries.findQueued([{ deliveryId, cycle: 6 }])).toEqual(
      new Set([deliveryJobId({ deliveryId, cycle: 6 })]),
    );
    harness.receiver.respondWith(500);
    await harness.startDispatcher();
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'failed', attempt_count: 12 }]);
    });
    const attempts = await attemptsOf(harness.database, deliveryId);
    expect(attempts.map(({ number, trigger }) => [number, trigger])).toEqual(
      [7, 8, 9, 10, 11, 12].map((number) => [number, number === 7 ? 'manual' : 'automatic']),
    );
  });

  test('loses no delivery after a crash between the commit of a pass and the addition of its jobs, which the reconciler adds', async () => {
    await insertEnded(120);
    const id = await begin(120);
    expect((await commitNextPage(harness.database.pool, id)).deliveries).toHaveLength(100);
    expect(await deliveries.counts()).toMatchObject({ waiting: 0 });
    expect(await runPass()).toEqual({ queuedDeliveries: 20, cancelledRecoveries: 0 });
    const events = openEventQueue(createQueueBackend(harness.queueUrl), () => undefined);
    const { pool } = harness.database;
    const found = await reconcile({
      pool,
      events,
      deliveries,
      quarantine: harness.quarantine,
      retryPolicy,
      graceMs: 0,
      eventGraceMs: 0,
    });
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

  test('ignores deliveries that fail while it runs, including those that it has redelivered', async () => {
    const first = await insertEnded(150);
    const id = await begin(150);
    await runPass();
    await query(
      `UPDATE deliveries SET status = 'failed', attempt_count = 12, completed_at = now() WHERE status = 'pending'`,
    );
    const lateDeliveries = await insertEnded(5);
    await query(`UPDATE deliveries SET completed_at = now() WHERE id = ANY ($1)`, [lateDeliveries]);
    expect(await runPass()).toEqual({ queuedDeliveries: 50, cancelledRecoveries: 0 });
    expect(await runPass()).toEqual({ queuedDeliveries: 0, cancelledRecoveries: 0 });
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 150 });
    const rows = await deliveriesOf(harness.database);
    expect(rows.filter(({ id, status }) => first.includes(id) && status === 'failed')).toHaveLength(100);
    expect(rows.filter(({ id, status }) => lateDeliveries.includes(id) && status === 'failed')).toHaveLength(
      5,
    );
  });

  test('redelivers only deliveries with its status and time range, of the same subscription', async () => {
    const own = await insertEnded(3, { status: 'cancelled', attempts: 0 });
    await insertEnded(2, { status: 'failed' });
    await insertEnded(2, { status: 'delivered' });
    const before = await insertEnded(2, { status: 'cancelled' });
    await query(`UPDATE deliveries SET created_at = now() - interval '4 hours' WHERE id = ANY ($1)`, [
      before,
    ]);
    const id = await begin(3, 'cancelled');
    subscription = await newSubscription();
    await insertEnded(2, { status: 'cancelled' });
    expect(await runPass()).toEqual({ queuedDeliveries: 3, cancelledRecoveries: 0 });
    const pending = (await deliveriesOf(harness.database)).filter(({ status }) => status === 'pending');
    expect(pending.map((row) => row.id).sort()).toEqual(own.sort());
    expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 3 });
  });

  test.each([
    ['active = false', 'The subscription is inactive.'],
    ['deleted_at = now()', 'The subscription was deleted.'],
  ])('ends when its subscription no longer delivers after the change %s', async (change, reason) => {
    await insertEnded(150);
    const id = await begin(150);
    await runPass();
    await query(`UPDATE subscriptions SET ${change}`);
    expect(await runPass()).toEqual({ queuedDeliveries: 0, cancelledRecoveries: 1 });
    expect(await runPass()).toEqual({ queuedDeliveries: 0, cancelledRecoveries: 0 });
    const end = { status: 'cancelled', reason, recovered_count: 100, completed_at: expect.any(Date) };
    expect(await recoveryOf(id)).toMatchObject(end);
  });

  test('processes one page in each pass, as other recoveries do, and in only one dispatcher at a time', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 2; index++) {
      subscription = await newSubscription();
      await insertEnded(110);
      ids.push(await begin(110));
    }
    expect(await runPass()).toMatchObject({ queuedDeliveries: 200 });
    await Promise.all([runPass(), runPass()]);
    for (const id of ids)
      expect(await recoveryOf(id)).toMatchObject({ status: 'done', recovered_count: 110 });
    expect(await deliveries.counts()).toMatchObject({ waiting: 220 });
    expect(errors).toEqual([]);
  });

  test('is skipped while another dispatcher processes it', async () => {
    await insertEnded(1);
    const id = await begin(1);
    await inTransaction(harness.database.pool, async (other) => {
      await other.query(`SELECT pg_advisory_xact_lock(hashtext('runhook.recover'), hashtext($1))`, [id]);
      expect(await runPass()).toEqual({ queuedDeliveries: 0, cancelledRecoveries: 0 });
    });
    expect(await runPass()).toMatchObject({ queuedDeliveries: 1 });
  });

  test('does not roll back or stop other recoveries when its statements time out', async () => {
    const ids: string[] = [];
    const subscriptionIds: string[] = [];
    for (let index = 0; index < 3; index++) {
      subscription = await newSubscription();
      await insertEnded(2);
      ids.push(await begin(2));
      subscriptionIds.push(subscription.id);
    }
    await query(`
      CREATE FUNCTION time_out() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$;
      CREATE TRIGGER time_out BEFORE UPDATE ON deliveries FOR EACH ROW
        WHEN (NEW.subscription_id = '${subscriptionIds[1]}') EXECUTE FUNCTION time_out()`);
    expect(await runPass()).toEqual({ queuedDeliveries: 4, cancelledRecoveries: 0 });
    expect(errors).toMatchObject([{ code: '57014' }]);
    const statuses = await Promise.all(ids.map(async (id) => (await recoveryOf(id)).status));
    expect(statuses).toEqual(['done', 'running', 'done']);
    await query('DROP TRIGGER time_out ON deliveries');
    expect(await runPass()).toMatchObject({ queuedDeliveries: 2 });
  });

  test('is deleted when it ended before the retention began, and not while it runs', async () => {
    const recentId = await begin(1);
    subscription = await newSubscription();
    const old = await begin(1);
    await query(`UPDATE recoveries SET created_at = now() - interval '40 days'`);
    await query(
      `UPDATE recoveries SET status = 'done', completed_at = now() - interval '31 days' WHERE id = $1`,
      [old],
    );
    await purge(harness.database.pool, { logRetentionDays: 30, runRetentionDays: 365 });
    expect((await query('SELECT id FROM recoveries')).rows).toEqual([{ id: recentId }]);
  });
});
