import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, EVENT_LIMITS, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { listQuarantined } from '@runhook/database';
import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, seedAccount } from '@runhook/testing';
import { reconcileLanes } from '../src/maintenance/lanes.ts';
import { claimDeferred } from '../src/record/deferred.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf } from './log-rows.ts';

describe.each(oneQueueBackend())('lanes, on $name', (backend) => {
  let harness: Harness;
  const closers: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
    await harness.close();
  });

  const events = (count: number, account = harness.account) =>
    Array.from({ length: count }, (_, index) =>
      exampleEvent('job.run.started', account.jobs[0] as never, 10_000 + index),
    );

  const openQueue = () => {
    const queue = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    closers.push(() => queue.close());
    return queue;
  };

  const runLanesPass = (onExpired?: (count: number) => void) =>
    reconcileLanes({
      pool: harness.database.pool,
      deliveries: openQueue(),
      quarantine: harness.quarantine,
      ...(onExpired && { onExpired }),
    });

  async function countDeferred(): Promise<number> {
    const sql = 'SELECT count(*)::int AS deferred FROM deliveries WHERE deferred_at IS NOT NULL';
    const { rows } = await harness.database.pool.query<{ deferred: number }>(sql);
    return rows[0]?.deferred ?? 0;
  }

  async function everyDelivery(count: number, status: string): Promise<void> {
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter((row) => row.status === status).length).toBe(count);
    });
  }

  /** Inserts deliveries as fan-out leaves them when their lane has no slot, without a job in the queue. */
  async function insertDeferred(
    subscription: { id: string; name: string },
    count: number,
    account = harness.account,
  ): Promise<void> {
    const rows = events(count, account).map((event) => ({
      event,
      version: null,
      deliveries: [
        {
          id: deliveryIdFor(event.eventId, subscription.id),
          subscriptionId: subscription.id,
          webhookName: subscription.name,
          isDeferred: true,
        },
      ],
    }));
    await commitResults(harness.database.pool, rows);
  }

  test('deliveries to an endpoint that hangs need one job in the queue, delay no other endpoint, and are sent oldest first', async () => {
    const COUNT = 200;
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    harness.receiver.respondWith(async ({ path }) => {
      if (path === '/held') await released;
      return { status: 200 };
    });
    const other = await seedAccount(harness.database);
    await harness.subscribe('/held');
    await harness.subscribe('/free', other.id);
    // Held requests must not reach their deadline, however slow the machine is.
    await harness.startDispatcher({ deliveryTimeoutMs: 60_000 });
    const queue = openQueue();

    await harness.publisher.publishMany(events(COUNT));
    await eventually(async () => {
      // A lane without responses may have 16 attempts in flight, first attempts or those of its job.
      expect(await countDeferred()).toBe(COUNT - 16);
    });
    const counts = await queue.counts();
    expect(Object.values(counts).reduce((all, count) => all + count, 0)).toBeLessThanOrEqual(1);

    await harness.publisher.publishMany(events(COUNT, other));
    await harness.receiver.waitFor(({ path }, _index, all) => {
      return path === '/free' && all.filter((request) => request.path === '/free').length === COUNT;
    });
    expect(await countDeferred()).toBeGreaterThanOrEqual(COUNT - 16);

    release();
    await everyDelivery(2 * COUNT, 'delivered');
    const runs = harness.receiver.requests
      .filter(({ path }) => path === '/held')
      .map(({ body }) => Number(JSON.parse(body.toString()).data.runId));
    expect(new Set(runs).size).toBe(COUNT);
    expect(runs).toHaveLength(COUNT);
    // Compares the starts of the attempts, since requests may overtake each other. Deliveries of one commit have the
    // same age. The first 16 were in flight before the others were deferred.
    const { rows } = await harness.database.pool.query<{ micros: string }>(
      `SELECT (extract(epoch FROM d.created_at) * 1000000)::bigint AS micros
       FROM deliveries d JOIN logged_attempts a ON a.day = d.day AND a.delivery_id = d.id
       WHERE d.account_id = $1 ORDER BY a.started_at, d.created_at OFFSET 16`,
      [harness.account.id],
    );
    const ages = rows.map(({ micros }) => Number(micros));
    expect(ages).toHaveLength(COUNT - 16);
    expect(ages).toEqual([...ages].sort((a, b) => a - b));
  });

  test('deferred deliveries of a deactivated subscription are cancelled with a reason, also those whose events are missing', async () => {
    const COUNT = 300;
    const subscription = await harness.subscribe('/off');
    await insertDeferred(subscription, COUNT);
    // A lane that has not succeeded claims at most 16 with their events.
    const oldest = 'SELECT event_id FROM deliveries ORDER BY day, created_at, id LIMIT 16';
    await harness.database.pool.query(`DELETE FROM events WHERE id NOT IN (${oldest})`);
    await harness.database.prisma.subscription.update({
      where: { id: subscription.id },
      data: { active: false },
    });
    await harness.startDispatcher();
    await openQueue().wakeLanes([{ subscriptionId: subscription.id, accountId: harness.account.id }]);
    await everyDelivery(COUNT, 'cancelled');
    const reasons = new Set((await deliveriesOf(harness.database)).map(({ reason }) => reason));
    expect([...reasons]).toEqual(['The subscription is inactive.']);
    expect(harness.receiver.requests).toHaveLength(0);
  });

  test('a delivery that is deferred after its subscription was reactivated is sent by the run of the lane that found the subscription inactive', async () => {
    const subscription = await harness.subscribe('/again');
    await insertDeferred(subscription, 2);
    const { pool } = harness.database;
    const [former, later] = (await deliveriesOf(harness.database)).map(({ id }) => id);
    await pool.query(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now() + interval '1 hour' WHERE id = $1`,
      [later],
    );
    await pool.query('UPDATE subscriptions SET active = false');
    // These changes commit together with the claim, which does not see them.
    await pool.query(`
      CREATE FUNCTION reactivate() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE subscriptions SET active = true WHERE NOT active;
        IF FOUND THEN
          UPDATE deliveries SET deferred_at = now(), next_attempt_at = NULL WHERE id = '${later}';
        END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER reactivate AFTER UPDATE ON deliveries FOR EACH STATEMENT EXECUTE FUNCTION reactivate()`);
    await harness.startDispatcher();
    await openQueue().wakeLanes([{ subscriptionId: subscription.id, accountId: harness.account.id }]);
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(Object.fromEntries(rows.map(({ id, status }) => [id, status]))).toEqual({
        [former as string]: 'cancelled',
        [later as string]: 'delivered',
      });
    });
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('a lane whose job does not name the account, as in the previous release, is processed', async () => {
    const subscription = await harness.subscribe('/before');
    await insertDeferred(subscription, 20);
    const queue = createQueueBackend(harness.queueUrl).createQueue<object>(WEBHOOK_DELIVERIES);
    await queue.add('lane', { subscriptionId: subscription.id });
    await harness.startDispatcher();
    await everyDelivery(20, 'delivered');
    expect(harness.receiver.requests).toHaveLength(20);
    await queue.close();
  });

  test('a lane whose job the queue has lost gets another job', async () => {
    const subscription = await harness.subscribe('/lost');
    await insertDeferred(subscription, 20);
    await harness.startDispatcher();
    const result = await runLanesPass();
    expect(result).toEqual({ waiting: 1, released: 0, expired: 0 });
    await everyDelivery(20, 'delivered');
    expect(harness.receiver.requests).toHaveLength(20);
  });

  const read = async (sql: string) => (await harness.database.pool.query(sql)).rows[0];
  const isBlocked = async () =>
    expect(await read('SELECT blocked_until > now() AS blocked FROM subscriptions')).toEqual({
      blocked: true,
    });

  test('Retry-After blocks first attempts and retries in every dispatcher until a probe succeeds', async () => {
    await harness.subscribe('/pause');
    harness.receiver.respondWith({ status: 429, headers: { 'retry-after': '3600' } });
    await harness.startDispatcher();
    await harness.publisher.publishMany(events(1));
    await eventually(isBlocked);
    expect(
      await read(`SELECT blocked_until - now() BETWEEN '59 min' AND '1 h' AS "isAnHour",
                    probe_at - now() BETWEEN '30 s' AND '60 s' AS "isAMinute" FROM subscriptions`),
    ).toEqual({ isAnHour: true, isAMinute: true });
    // The retry of this delivery is deferred as well.
    await eventually(async () => expect(await countDeferred()).toBe(1));
    await harness.startDispatcher();
    await harness.publisher.publishMany(events(20).slice(1));
    await eventually(async () => expect(await countDeferred()).toBe(20));
    expect(harness.receiver.requests).toHaveLength(1);

    await harness.database.pool.query('UPDATE subscriptions SET probe_at = now()');
    await harness.receiver.waitFor(2);
    harness.receiver.respondWith(204);
    await eventually(async () => {
      expect(await read(`SELECT probe_at > now() + '30 s' AS claimed FROM subscriptions`)).toEqual({
        claimed: true,
      });
    });
    await isBlocked();
    expect(harness.receiver.requests).toHaveLength(2);
    await eventually(async () => expect(await countDeferred()).toBe(20));
    await harness.database.pool.query('UPDATE subscriptions SET probe_at = now()');
    await everyDelivery(20, 'delivered');
    expect(harness.receiver.requests).toHaveLength(2 + 20);
    expect(await read('SELECT blocked_until <= now() AS ended FROM subscriptions')).toEqual({ ended: true });
  });

  test('a dispatcher that received a Retry-After blocks the subscription before the block is on record, also for events planned without it', async () => {
    const { id } = await harness.subscribe('/pause');
    harness.receiver.respondWith({ status: 429, headers: { 'retry-after': '3600' } });
    await harness.startDispatcher();
    const { pool } = harness.database;
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('SELECT FROM subscriptions WHERE id = $1 FOR NO KEY UPDATE', [id]);
      await harness.publisher.publishMany(events(1));
      const waiting = `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%blocked_until%'`;
      await eventually(async () => expect((await pool.query(waiting)).rowCount).toBe(1));
      await harness.publisher.publishMany(events(20).slice(1));
      await eventually(async () => {
        expect((await deliveriesOf(harness.database)).length).toBeGreaterThanOrEqual(19);
      });
      expect(await countDeferred()).toBe(19);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
    await eventually(isBlocked);
    await eventually(async () => expect(await countDeferred()).toBe(20));
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('a manual redelivery does not wait for the end of a block by Retry-After, but a delivery of a recovery does', async () => {
    const { id } = await harness.subscribe('/pause');
    await insertDeferred({ id, name: 'x' }, 2);
    const { pool } = harness.database;
    await pool.query(
      `UPDATE subscriptions SET blocked_until = now() + interval '1 hour', probe_at = now() + interval '1 hour'`,
    );
    const { rows } = await pool.query<{ id: string }>(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now(), trigger = 'manual' RETURNING id`,
    );
    const [redelivered, recovered] = rows.map((row) => row.id) as [string, string];
    await pool.query(`UPDATE deliveries SET recovery_id = 'wrc_x' WHERE id = $1`, [recovered]);
    harness.receiver.respondWith(503);
    await harness.startDispatcher();
    const accountId = harness.account.id;
    const one = { cycle: 0, accountId, delayMs: 0, attemptsLeft: 6 };
    await openQueue().add([{ ...one, deliveryId: recovered }]);
    await eventually(async () => expect(await countDeferred()).toBe(1));
    expect(harness.receiver.requests).toHaveLength(0);
    harness.receiver.respondWith(204);
    await openQueue().add([{ ...one, deliveryId: redelivered }]);
    // Its success ends the block.
    await everyDelivery(2, 'delivered');
  });

  test('a blocked subscription has at most 16 redeliveries in flight, and a further one is attempted once they have ended', async () => {
    const subscription = await harness.subscribe('/pause');
    await insertDeferred(subscription, 17);
    const { pool } = harness.database;
    await pool.query(
      `UPDATE subscriptions SET blocked_until = now() + interval '1 hour', probe_at = now() + interval '1 hour'`,
    );
    const { rows } = await pool.query<{ id: string }>(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now(), trigger = 'manual' RETURNING id`,
    );
    let respond: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      respond = resolve;
    });
    harness.receiver.respondWith(async () => {
      await released;
      return { status: 503 };
    });
    await harness.startDispatcher({ deliveryTimeoutMs: 60_000 });
    const queue = openQueue();
    const one = { cycle: 0, accountId: harness.account.id, delayMs: 0, attemptsLeft: 6 };
    await queue.add(rows.map(({ id }) => ({ ...one, deliveryId: id })));
    await harness.receiver.waitFor(16);
    await eventually(async () => expect((await queue.counts()).delayed).toBe(1));
    respond();
    await harness.receiver.waitFor(17);
    await isBlocked();
  });

  test('a new client_url ends the block of a subscription by Retry-After', async () => {
    const { id } = await harness.subscribe('/pause');
    await insertDeferred({ id, name: 'x' }, 1);
    await harness.database.pool.query(
      `UPDATE subscriptions SET blocked_until = now() + interval '1 hour', probe_at = now() + interval '1 hour'`,
    );
    await harness.startDispatcher();
    await openQueue().wakeLanes([{ subscriptionId: id, accountId: harness.account.id }]);
    await harness.publisher.publishMany(events(1));
    await eventually(async () => expect(await countDeferred()).toBe(2));
    expect(harness.receiver.requests).toHaveLength(0);
    await harness.database.prisma.subscription.update({
      where: { id },
      data: { clientUrl: `${harness.receiver.url}/new` },
    });
    await everyDelivery(2, 'delivered');
  });

  test('a late Retry-After of the former client_url does not block the new one', async () => {
    const { id } = await harness.subscribe('/former');
    let respond: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      respond = resolve;
    });
    harness.receiver.respondWith(async ({ path }) => {
      if (path === '/new') return { status: 204 };
      await released;
      return { status: 429, headers: { 'retry-after': '3600' } };
    });
    await harness.startDispatcher({ deliveryTimeoutMs: 60_000 });
    await harness.publisher.publishMany(events(1));
    await harness.receiver.waitFor(1);
    const data = { clientUrl: `${harness.receiver.url}/new` };
    await harness.database.prisma.subscription.update({ where: { id }, data });
    respond();
    await eventually(async () => {
      expect(await read('SELECT attempt_count FROM deliveries')).toEqual({ attempt_count: 1 });
    });
    expect(await read('SELECT blocked_until FROM subscriptions')).toEqual({ blocked_until: null });
    await harness.publisher.publishMany(events(2).slice(1));
    await everyDelivery(2, 'delivered');
  });

  test('the claim of a probe skips a delivery with only its last attempt left', async () => {
    const subscription = await harness.subscribe('/pause');
    await insertDeferred(subscription, 2);
    const { pool } = harness.database;
    const [last] = (await deliveriesOf(harness.database)).map(({ id }) => id);
    await pool.query('UPDATE deliveries SET attempt_count = 5 WHERE id = $1', [last]);
    const lane = { subscriptionId: subscription.id, accountId: harness.account.id };
    const claimed = await claimDeferred(pool, {
      ...lane,
      limit: 10,
      permitsMax: 1_000,
      attemptMs: 10_000,
      attemptsBelow: 5,
    });
    expect(claimed).toHaveLength(1);
    expect(claimed[0]?.id).not.toBe(last);
  });

  test('claims take the oldest deferred deliveries of a lane first, and concurrent claims take different ones', async () => {
    const subscription = await harness.subscribe('/order');
    await insertDeferred(subscription, 40);
    const { pool } = harness.database;
    const { rows } = await pool.query<{ id: string }>(
      `WITH aged AS (SELECT id, row_number() OVER (ORDER BY md5(id)) AS age FROM deliveries), changed AS (
         UPDATE deliveries d SET created_at = to_timestamp($1::float8 - age) FROM aged WHERE aged.id = d.id)
       SELECT id FROM aged ORDER BY age DESC`,
      [Date.now() / 1_000],
    );
    const orderedIds = rows.map(({ id }) => id);
    const claim = async () => {
      const claimed = await claimDeferred(pool, {
        subscriptionId: subscription.id,
        accountId: harness.account.id,
        limit: 10,
        permitsMax: 1_000,
        attemptMs: 10_000,
      });
      return claimed.map(({ id }) => id);
    };
    expect(await claim()).toEqual(orderedIds.slice(0, 10));
    const [some, others] = await Promise.all([claim(), claim()]);
    expect([...some, ...others].sort()).toEqual([...new Set([...some, ...others])].sort());
    await claim();
    await claim();
    expect(await claim()).toEqual([]);
    expect(await countDeferred()).toBe(0);
  });

  test('the maintenance of lanes finds every lane with deferred deliveries', async () => {
    const lanes = await Promise.all(Array.from({ length: 7 }, (_, index) => harness.subscribe(`/${index}`)));
    for (const lane of lanes) await insertDeferred(lane, 3);
    const result = await runLanesPass();
    expect(result.waiting).toBe(7);
  });

  test('a delivery that was deferred for a day without a block by Retry-After is failed with a reason', async () => {
    const subscription = await harness.subscribe('/day');
    await insertDeferred(subscription, 5);
    const { pool } = harness.database;
    await pool.query(
      `UPDATE deliveries SET deferred_at = now() - interval '24 hours 1 minute'
       WHERE id IN (SELECT id FROM deliveries ORDER BY id LIMIT 3)`,
    );
    const setBlocked = (hoursAgo: number) =>
      pool.query(`UPDATE subscriptions SET blocked_until = now() - $1 * interval '1 hour'`, [hoursAgo]);
    // Blocked time does not count: the day starts again after a block.
    await setBlocked(23);
    expect(await runLanesPass()).toEqual({ waiting: 1, released: 0, expired: 0 });
    // A new endpoint, or the activation of the subscription, ends a block, and the day starts again.
    for (const changes of [[`client_url = client_url || '/new'`], ['active = false', 'active = true']]) {
      await setBlocked(-1);
      for (const change of changes) await pool.query(`UPDATE subscriptions SET ${change}`);
      expect(await runLanesPass()).toEqual({ waiting: 1, released: 0, expired: 0 });
    }
    await setBlocked(25);
    await pool.query(`UPDATE subscriptions SET client_url = client_url || '/newer'`);
    // The day starts again as well when the lane has waited for its rate limit.
    const setLimited = (hoursAgo: number) =>
      pool.query(
        `INSERT INTO rate_buckets SELECT id, 0, now(), now() - $1 * interval '1 hour' FROM subscriptions
         ON CONFLICT (subscription_id) DO UPDATE SET limited_at = EXCLUDED.limited_at`,
        [hoursAgo],
      );
    await setLimited(23);
    expect(await runLanesPass()).toEqual({ waiting: 1, expired: 0, released: 0 });
    await setLimited(25);
    const result = await runLanesPass();
    expect(result).toEqual({ waiting: 1, released: 0, expired: 3 });
    const rows = await deliveriesOf(harness.database);
    expect(rows.map(({ status }) => status).sort()).toEqual([
      'failed',
      'failed',
      'failed',
      'pending',
      'pending',
    ]);
    expect(rows.find(({ status }) => status === 'failed')?.reason).toMatch(
      /^It could not be attempted for 24 hours/,
    );
  });

  test('a deferred delivery whose expiry PostgreSQL rejects is set aside, and all others of its and other accounts expire', async () => {
    const { pool } = harness.database;
    const another = await seedAccount(harness.database);
    await insertDeferred(await harness.subscribe('/bad'), 5);
    await insertDeferred(await harness.subscribe('/other', another.id), 3, another);
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM deliveries WHERE account_id = $1', [
      harness.account.id,
    ]);
    const bad = rows[2]?.id;
    await pool.query(`UPDATE deliveries SET deferred_at = now() - interval '25 hours'`);
    await pool.query(
      `ALTER TABLE deliveries ADD CONSTRAINT reject CHECK (NOT (id = '${bad}' AND status = 'failed')) NOT VALID`,
    );
    expect(await runLanesPass()).toMatchObject({ expired: 7 });
    const setAside = await listQuarantined(pool, { limit: 10 });
    expect(setAside).toMatchObject([
      {
        kind: 'delivery',
        key: bad,
        accountId: harness.account.id,
        reason: expect.stringMatching(/^23514: /),
      },
    ]);
    expect(await runLanesPass()).toMatchObject({ expired: 0 });
  });

  test('an account whose deferred deliveries cannot be changed does not stop the expiry of those of another account', async () => {
    const { pool } = harness.database;
    const another = await seedAccount(harness.database);
    await insertDeferred(await harness.subscribe('/bad'), 3);
    await insertDeferred(await harness.subscribe('/other', another.id), 3, another);
    const setHours = (accountId: number, hours: number) =>
      pool.query(`UPDATE deliveries SET deferred_at = now() - $1 * interval '1 hour' WHERE account_id = $2`, [
        hours,
        accountId,
      ]);
    await setHours(harness.account.id, 26);
    await setHours(another.id, 25);
    await pool.query(
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'of this account'; END $$;
       CREATE TRIGGER fail BEFORE UPDATE ON deliveries FOR EACH ROW
       WHEN (NEW.account_id = ${harness.account.id}) EXECUTE FUNCTION fail()`,
    );
    const expired: number[] = [];
    await expect(runLanesPass((count) => expired.push(count))).rejects.toThrow('Failed: expired.');
    expect(expired).toEqual([3]);
  });

  test('an attempt that hangs does not stop the others of its lane once retries release their slots', async () => {
    const COUNT = 40;
    const RETRIES = 15;
    const subscription = await harness.subscribe('/slots');
    await insertDeferred(subscription, COUNT);
    const { pool } = harness.database;
    const { rows } = await pool.query<{ id: string }>(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now(), attempt_count = 1
       WHERE id IN (SELECT id FROM deliveries ORDER BY id LIMIT ${RETRIES}) RETURNING id`,
    );
    let endRetries = () => {};
    const retriesEnded = new Promise<void>((resolve) => {
      endRetries = resolve;
    });
    let endHanging = () => {};
    const hangingEnded = new Promise<void>((resolve) => {
      endHanging = resolve;
    });
    // A dispatcher stops once its requests have ended, also after a failure.
    closers.push(async () => {
      endRetries();
      endHanging();
    });
    harness.receiver.respondWith(async (_request, index) => {
      if (index < RETRIES) await retriesEnded;
      if (index === RETRIES) await hangingEnded;
      return { status: 200 };
    });
    await harness.startDispatcher({ deliveryTimeoutMs: 120_000 });
    const queue = openQueue();
    const retry = { cycle: 0, accountId: harness.account.id, delayMs: 0, attemptsLeft: 5 };
    await queue.add(rows.map(({ id }) => ({ ...retry, deliveryId: id })));
    await harness.receiver.waitFor(RETRIES);
    // A lane that has not succeeded has 16 slots: the first attempt of the pass gets the last one. When its request
    // arrives, the pass waits.
    await queue.wakeLanes([{ subscriptionId: subscription.id, accountId: harness.account.id }]);
    await harness.receiver.waitFor(RETRIES + 1);
    endRetries();
    await everyDelivery(COUNT - 1, 'delivered');
    endHanging();
    await everyDelivery(COUNT, 'delivered');
  });

  test('an account has as many attempts of the longest events in flight as its permits allow', async () => {
    const COUNT = 40;
    const subscription = await harness.subscribe('/held');
    await insertDeferred(subscription, COUNT);
    const longest = 'x'.repeat(EVENT_LIMITS.messageCharactersMax);
    await harness.database.pool.query(
      `UPDATE events SET data = (data::jsonb || jsonb_build_object('runStatusMessage', $1::text, 'runReason', $1::text))::json`,
      [longest],
    );
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    harness.receiver.respondWith(async () => {
      await released;
      return { status: 200 };
    });
    await harness.startDispatcher({ deliveryConcurrency: 50, deliveryTimeoutMs: 60_000 });
    await openQueue().wakeLanes([{ subscriptionId: subscription.id, accountId: harness.account.id }]);
    // An account may have half of 200 permits, and each attempt has 17. With five in flight, 33 are not free, which
    // the longest event needs. The lane has 16 slots.
    await harness.receiver.waitFor(5);
    await eventually(async () => expect(await countDeferred()).toBe(COUNT - 5));
    expect(harness.receiver.requests).toHaveLength(5);
    release();
    await everyDelivery(COUNT, 'delivered');
  });

  test('several dispatchers attempt each deferred delivery once', async () => {
    const lanes = await Promise.all(['/a', '/b', '/c'].map((path) => harness.subscribe(path)));
    for (const lane of lanes) await insertDeferred(lane, 100);
    await Promise.all([harness.startDispatcher(), harness.startDispatcher()]);
    const queue = openQueue();
    const lanesToWake = lanes.map(({ id }) => ({ subscriptionId: id, accountId: harness.account.id }));
    await Promise.all([1, 2, 3].map(() => queue.wakeLanes(lanesToWake)));
    await everyDelivery(300, 'delivered');
    expect(harness.receiver.requests).toHaveLength(300);
  });

  test('deferred deliveries of a webhook whose secret cannot be decrypted stay deferred, and are sent once it can be', async () => {
    const subscription = await harness.subscribe('/secret');
    await harness.subscribe('/readable');
    const { pool } = harness.database;
    await insertDeferred(subscription, 10);
    const { id } = subscription;
    const previousSecret = await pool.query(
      'SELECT hmac_secret_ciphertext AS secret FROM subscriptions WHERE id = $1',
      [id],
    );
    const setSecret = (secret: string) =>
      pool.query('UPDATE subscriptions SET hmac_secret_ciphertext = $1 WHERE id = $2', [secret, id]);
    await setSecret('none:of:these');
    await harness.startDispatcher();
    const queue = openQueue();
    await queue.wakeLanes([{ subscriptionId: subscription.id, accountId: harness.account.id }]);
    await eventually(async () => {
      expect((await queue.counts()).delayed).toBe(1);
      expect(await countDeferred()).toBe(10);
    });
    await setSecret(previousSecret.rows[0].secret);
    await everyDelivery(10, 'delivered');
    expect(harness.receiver.requests).toHaveLength(10);
  });
});
