import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, deliveryIdFor } from '@runhook/contract';
import { eventually, exampleEvent, oneQueueBackend, seedAccount, type TestAccount } from '@runhook/testing';
import { limitPending } from '../src/maintenance/pending-limit.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf } from './log-rows.ts';

const LIMIT = 40;
const REASON =
  'The account has more than 40 pending deliveries, and this webhook has reached its share of them. ' +
  'Redeliver or recover it when its endpoint responds again.';
/** Number of attempts that a lane without responses may have in flight. */
const UNPROVEN = 16;

describe.each(oneQueueBackend())('an account with too many deferred deliveries, on $name', (backend) => {
  let harness: Harness;
  let release: () => void;
  beforeEach(async () => {
    harness = await openHarness(backend);
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    harness.receiver.respondWith(async ({ path }) => {
      if (path.startsWith('/held')) await released;
      return { status: 200 };
    });
  });
  afterEach(async () => {
    release();
    await harness.close();
  });

  let runId = 10_000;
  const events = (count: number, account: TestAccount = harness.account) =>
    Array.from({ length: count }, () => exampleEvent('job.run.started', account.jobs[0] as never, runId++));
  const publish = (count: number, account?: TestAccount) =>
    harness.publisher.publishMany(events(count, account));

  // Held requests must not reach their deadline, however slow the machine is.
  const start = () =>
    harness.startDispatcher({ deliveryTimeoutMs: 120_000, pendingDeliveriesPerAccount: LIMIT });

  const limit = (pendingMax = LIMIT, options = {}) =>
    limitPending({ pool: harness.database.pool, pendingMax, ...options });

  async function query<Row>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return (await harness.database.pool.query(sql, values)).rows as Row[];
  }

  async function counts(subscriptionId: string): Promise<Record<string, number>> {
    const rows = await query<{ state: string; count: number }>(
      `SELECT CASE WHEN deferred_at IS NOT NULL THEN 'deferred' ELSE status END AS state, count(*)::int AS count
       FROM deliveries WHERE subscription_id = $1 GROUP BY 1`,
      [subscriptionId],
    );
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  async function expectStates(subscriptionId: string, expected: Record<string, number>): Promise<void> {
    await eventually(async () => expect(await counts(subscriptionId)).toEqual(expected));
  }

  /** Waits until a lane has `count` deliveries in flight or deferred, in proportions that the machine's speed decides. */
  async function wait(subscriptionId: string, count: number, cancelledCount = 0): Promise<void> {
    await eventually(async () => {
      const { pending = 0, deferred = 0, cancelled = 0 } = await counts(subscriptionId);
      expect([pending + deferred, cancelled]).toEqual([count, cancelledCount]);
      expect(deferred).toBeGreaterThanOrEqual(count - UNPROVEN);
    });
  }

  async function fullLanes(): Promise<string[]> {
    const rows = await query<{ id: string }>(
      'SELECT id FROM subscriptions WHERE lane_full_since IS NOT NULL',
    );
    return rows.map(({ id }) => id).sort();
  }

  async function metric(port: number, series: string): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(series))
        ?.split(' ')
        .at(-1),
    );
  }

  /** Inserts deliveries as fan-out leaves them when their lane has no slot, without a job in the queue. */
  async function insertDeferred(
    subscription: { id: string; name: string },
    count: number,
    account?: TestAccount,
  ): Promise<void> {
    const { id: subscriptionId, name: webhookName } = subscription;
    const rows = events(count, account).map((event) => {
      const id = deliveryIdFor(event.eventId, subscriptionId);
      return { event, version: null, deliveries: [{ id, subscriptionId, webhookName, isDeferred: true }] };
    });
    await commitResults(harness.database.pool, rows);
  }

  async function deliverDeferred(subscriptionId: string, count: number): Promise<void> {
    await query(
      `UPDATE deliveries SET deferred_at = NULL, status = 'delivered'
       WHERE id IN (SELECT id FROM deliveries WHERE subscription_id = $1 AND deferred_at IS NOT NULL LIMIT $2)`,
      [subscriptionId, count],
    );
  }

  test("gets the deliveries beyond a lane's share cancelled with a reason, without effect on other endpoints and accounts", async () => {
    const other = await seedAccount(harness.database);
    const dead = await harness.subscribe('/held');
    const healthy = await harness.subscribe('/healthy');
    const others = await harness.subscribe('/held-of-another', other.id);
    const { port } = await start();

    // The healthy lane first succeeds, so that it has no deferred deliveries that maintenance would count.
    await publish(1);
    await expectStates(healthy.id, { delivered: 1 });
    await publish(LIMIT - 1);
    await wait(dead.id, LIMIT);
    // Deliveries beyond the limit share a commit, because the dispatcher's own maintenance may run at any time.
    await publish(UNPROVEN + 1);
    await publish(UNPROVEN + 5, other);
    await wait(dead.id, UNPROVEN + LIMIT + 1);
    await wait(others.id, UNPROVEN + 5);
    await limit();
    expect(await fullLanes()).toEqual([dead.id]);

    await publish(30);
    await publish(3, other);
    await wait(dead.id, UNPROVEN + LIMIT + 1, 30);
    await expectStates(healthy.id, { delivered: UNPROVEN + LIMIT + 1 + 30 });
    await wait(others.id, UNPROVEN + 8);
    const rows = (await deliveriesOf(harness.database)).filter(({ status }) => status === 'cancelled');
    for (const row of rows) {
      expect(row).toMatchObject({
        reason: REASON,
        attempt_count: 0,
        next_attempt_at: null,
        completed_at: expect.any(Date),
      });
    }
    await eventually(async () => {
      expect(await metric(port, 'runhook_deliveries_total{route="cancelled"')).toBe(30);
      expect(await metric(port, 'runhook_deliveries_completed_total{outcome="cancelled"')).toBe(30);
      expect(await metric(port, 'runhook_accounts_over_pending_limit')).toBe(1);
    });

    release();
    await expectStates(dead.id, { delivered: UNPROVEN + LIMIT + 1, cancelled: 30 });
    await limit();
    expect(await fullLanes()).toEqual([]);
    await publish(10);
    await expectStates(dead.id, { delivered: UNPROVEN + LIMIT + 11, cancelled: 30 });

    // Cancelled deliveries can be recovered like any other.
    await query(
      `INSERT INTO recoveries (id, subscription_id, status, since, until, delivery_status, total_count)
       VALUES ($1, $2, 'running', now() - interval '1 hour', now() + interval '1 hour', 'cancelled', 30)`,
      [createId('recovery'), dead.id],
    );
    await expectStates(dead.id, { delivered: UNPROVEN + LIMIT + 41 });
  });

  test('is limited by every dispatcher from its next event on', async () => {
    const dead = await harness.subscribe('/held');
    const dispatchers = [await start(), await start()];
    await publish(100);
    const countInFlight = () => harness.receiver.requests.length;
    await eventually(async () => {
      const { deferred = 0 } = await counts(dead.id);
      expect(deferred + countInFlight()).toBe(100);
    });
    await limit();
    const { deferred: before = 0 } = await counts(dead.id);
    await publish(100);
    await eventually(async () => {
      const { deferred = 0, pending = 0, cancelled = 0 } = await counts(dead.id);
      // A dispatcher with free slots may have taken some of them since; none may have been added.
      expect(deferred).toBeLessThanOrEqual(before);
      expect(pending + cancelled).toBe(200 - deferred);
      expect(countInFlight()).toBe(pending);
      // Both dispatchers have slots.
      expect(pending).toBeLessThanOrEqual(2 * UNPROVEN);
      const counted = dispatchers.map(({ port }) =>
        metric(port, 'runhook_deliveries_total{route="cancelled"'),
      );
      const [one = 0, another = 0] = await Promise.all(counted);
      expect(one + another).toBe(cancelled);
    });
  });

  test('may exceed the limit by one event with many subscriptions, and the deliveries of the next event are cancelled', async () => {
    const COUNT = 1_100;
    const first = await harness.subscribe('/held');
    await query(
      `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active,
                                  hmac_secret_ciphertext)
       SELECT left(id, 26) || lpad(n::text, 5, '0'), account_id, name, description, event_types, job_ids, client_url,
              active, hmac_secret_ciphertext
       FROM subscriptions, generate_series(1, ${COUNT - 1}) AS n WHERE id = $1`,
      [first.id],
    );
    await start();
    await publish(1);
    // First attempts without a slot are deferred soon after their commit.
    await eventually(async () => {
      const [row] = await query<{ deferred: number }>(
        'SELECT count(deferred_at)::int AS deferred FROM deliveries',
      );
      expect((row?.deferred ?? 0) + harness.receiver.requests.length).toBe(COUNT);
    });
    await limit();
    expect(await fullLanes()).toHaveLength(COUNT);
    const [event] = events(1);
    await harness.publisher.publishMany(event ? [event] : []);
    await eventually(async () => {
      const rows = (await deliveriesOf(harness.database)).filter(
        ({ event_id }) => event_id === event?.eventId,
      );
      expect(rows.length).toBe(COUNT);
      expect(rows.filter(({ status }) => status !== 'cancelled').length).toBe(0);
    });
  });

  test('has a full lane for each subscription that has its share of the limit, until the lane has less than nine tenths of that', async () => {
    const [one, two, three] = [
      await harness.subscribe('/1'),
      await harness.subscribe('/2'),
      await harness.subscribe('/3'),
    ];
    const other = await harness.subscribe('/4', (await seedAccount(harness.database)).id);
    const result = () => limit();
    await insertDeferred(one, LIMIT);
    expect(await result()).toEqual({ accounts: 1, filled: 0, reopened: 0 });
    await insertDeferred(two, 5);
    expect(await result()).toEqual({ accounts: 1, filled: 1, reopened: 0 });
    expect(await fullLanes()).toEqual([one.id]);
    expect(await result()).toEqual({ accounts: 1, filled: 0, reopened: 0 });
    // Each of two lanes has a share of half the limit.
    await insertDeferred(two, 15);
    expect(await result()).toEqual({ accounts: 1, filled: 1, reopened: 0 });
    expect(await fullLanes()).toEqual([one.id, two.id].sort());
    // Above twice the limit all lanes of the account become full.
    await insertDeferred(one, LIMIT);
    expect(await result()).toEqual({ accounts: 1, filled: 1, reopened: 0 });
    expect(await fullLanes()).toEqual([one.id, two.id, three.id].sort());
    await deliverDeferred(one.id, LIMIT);
    expect(await result()).toEqual({ accounts: 1, filled: 0, reopened: 1 });
    await deliverDeferred(two.id, 20);
    await deliverDeferred(one.id, 4);
    expect(await result()).toEqual({ accounts: 1, filled: 0, reopened: 1 });
    expect(await fullLanes()).toEqual([one.id]);
    await deliverDeferred(one.id, 1);
    expect(await result()).toEqual({ accounts: 1, filled: 0, reopened: 1 });
    await deliverDeferred(one.id, LIMIT);
    expect(await result()).toEqual({ accounts: 0, filled: 0, reopened: 0 });
    expect(await fullLanes()).not.toContain(other.id);
  });

  test('is counted in a pass of limited cost, and the next pass continues after the last account', async () => {
    const lanes: { id: string; name: string }[] = [];
    for (const path of ['/1', '/2', '/3']) {
      const account = await seedAccount(harness.database);
      lanes.push(await harness.subscribe(path, account.id));
    }
    for (const lane of lanes) {
      await query(
        `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                                 deferred_at)
         SELECT current_date, s.id || n, s.account_id, s.id, 'e' || n, 'job.run.started', 1, 1, s.name, now()
         FROM subscriptions s, generate_series(1, ${LIMIT + 1}) AS n WHERE s.id = $1`,
        [lane.id],
      );
    }
    const bounded = () => limit(LIMIT, { costMax: 2 * 1_000 });
    expect(await bounded()).toEqual({ accounts: 2, filled: 2, reopened: 0 });
    expect(await bounded()).toEqual({ accounts: 1, filled: 1, reopened: 0 });
    expect(await fullLanes()).toEqual(lanes.map(({ id }) => id).sort());
    expect(await bounded()).toEqual({ accounts: 2, filled: 0, reopened: 0 });
  });

  test('is checked although another account cannot be checked', async () => {
    const [one, other] = [await seedAccount(harness.database), await seedAccount(harness.database)];
    const [bad, good] = [await harness.subscribe('/1', one.id), await harness.subscribe('/2', other.id)];
    await insertDeferred(bad, LIMIT + 1, one);
    await insertDeferred(good, LIMIT + 1, other);
    await query(
      `CREATE FUNCTION reject_full() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN RAISE EXCEPTION 'rejected'; END $$;
       CREATE TRIGGER reject BEFORE UPDATE ON subscriptions FOR EACH ROW WHEN (OLD.id = '${bad.id}')
       EXECUTE FUNCTION reject_full()`,
    );
    await expect(limit()).rejects.toThrow('The lanes of 1 accounts could not be checked.');
    expect(await fullLanes()).toEqual([good.id]);
  });
});
