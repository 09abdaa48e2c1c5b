import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import {
  countDispatchedEvents,
  eventually,
  exampleEvent,
  oneQueueBackend,
  seedSubscription,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { type CommitResult, commitEvents, type EventCommit } from '../src/record/commit-events.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf } from './log-rows.ts';

/** Number of subscriptions: more than the largest page has deliveries. */
const COUNT = 520;

/** Commits a page that is followed by others. Returns its result and the number of its new deliveries. */
async function commitPage(pool: Pool, page: EventCommit): Promise<[CommitResult, number]> {
  const [outcome] = await commitEvents(pool, [{ ...page, isPartial: true }]);
  return [outcome?.result as CommitResult, outcome?.added.size ?? 0];
}

describe.each(oneQueueBackend())('an event with more deliveries than a page, on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  const event = () => exampleEvent('job.run.started', harness.account.jobs[0] as never, 30_000);

  /** Creates one subscription, and copies it. */
  async function subscribe(): Promise<{ id: string; name: string }[]> {
    const first = await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const { rows } = await harness.database.pool.query<{ id: string; name: string }>(
      `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active,
                                  hmac_secret_ciphertext)
       SELECT left(s.id, 20) || lpad(n::text, 11, '0'), account_id, name || n, description, event_types, job_ids,
              client_url, active, hmac_secret_ciphertext
       FROM subscriptions s, generate_series(1, ${COUNT - 1}) AS n RETURNING id, name`,
    );
    return [{ id: first.id, name: first.name }, ...rows];
  }

  /** One process may take minutes for these deliveries on a busy machine. */
  async function expectAllDone(): Promise<void> {
    await eventually(
      async () => {
        const sql = "SELECT count(*)::int AS count FROM deliveries WHERE status = 'delivered'";
        expect((await harness.database.pool.query(sql)).rows).toEqual([{ count: COUNT }]);
      },
      { timeoutMs: 4 * WAIT_TIMEOUT_MS },
    );
  }

  const rowsFor = (published: ReturnType<typeof event>, subscriptions: { id: string; name: string }[]) => ({
    event: published,
    version: null as string | null,
    deliveries: subscriptions.map(({ id, name }) => ({
      id: deliveryIdFor(published.eventId, id),
      subscriptionId: id,
      webhookName: name,
      isDeferred: false,
    })),
  });

  async function versionOfAccount(): Promise<string> {
    const { rows } = await harness.database.pool.query<{ version: string }>('SELECT version FROM accounts');
    return rows[0]?.version ?? '';
  }

  test('is delivered to each subscription once', async () => {
    await subscribe();
    await harness.startDispatcher();
    const published = event();
    await harness.publisher.publishMany([published, published]);
    await expectAllDone();
    await harness.publisher.publish(published);
    await eventually(async () => {
      expect(await countDispatchedEvents(harness.database)).toBe(1);
    });
    expect(harness.receiver.requests).toHaveLength(COUNT);
  });

  test('is completed although its first page fills every lane of its account', async () => {
    await subscribe();
    // Without a response each lane gets a few slots only; full lanes would cancel the other deliveries.
    let respond = () => {};
    const responded = new Promise<{ status: number }>((resolve) => {
      respond = () => resolve({ status: 200 });
    });
    harness.receiver.respondWith(() => responded);
    await harness.database.pool.query(`
      CREATE FUNCTION fill_lanes() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE subscriptions SET lane_full_since = now() WHERE lane_full_since IS NULL;
        RETURN NULL;
      END $$;
      CREATE TRIGGER fill_lanes AFTER INSERT ON deliveries FOR EACH STATEMENT EXECUTE FUNCTION fill_lanes()`);
    await harness.startDispatcher({ deliveryTimeoutMs: 120_000, deliveryConcurrency: 64 });
    const published = event();
    await harness.publisher.publish(published);
    await eventually(async () => {
      expect(await countDispatchedEvents(harness.database)).toBe(1);
    });
    const deliveries = await deliveriesOf(harness.database);
    expect(deliveries).toHaveLength(COUNT);
    expect(deliveries.filter(({ status }) => status !== 'pending')).toEqual([]);
    respond();
  });

  test('is completed after a crash between two pages, and requests with a recorded result are not repeated', async () => {
    const subscriptions = await subscribe();
    const published = event();
    const page = { ...rowsFor(published, subscriptions.slice(0, 500)), version: await versionOfAccount() };
    expect(await commitPage(harness.database.pool, page)).toEqual(['claimed', 500]);
    // Most of the page was attempted before the crash; the rest is overdue for longer than an attempt may take.
    await harness.database.pool.query("UPDATE deliveries SET next_attempt_at = now() - interval '2 minutes'");
    const { rowCount: attemptedCount } = await harness.database.pool.query(
      `UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL WHERE id IN (
         SELECT id FROM deliveries ORDER BY id LIMIT 480)`,
    );
    await harness.startDispatcher();
    await harness.publisher.publish(published);
    await expectAllDone();
    expect(harness.receiver.requests).toHaveLength(COUNT - (attemptedCount ?? 0));
  });

  test('adds only the missing deliveries of a repeated page, and none once it is dispatched or its plan is outdated', async () => {
    const subscriptions = await subscribe();
    const version = await versionOfAccount();
    const { pool } = harness.database;
    const published = event();
    const page = { ...rowsFor(published, subscriptions.slice(0, 500)), version };
    expect(await commitPage(pool, page)).toEqual(['claimed', 500]);
    const larger = { ...rowsFor(published, subscriptions.slice(0, 510)), version };
    const recorded = { ...larger, isRecorded: true };
    expect(await commitPage(pool, recorded)).toEqual(['claimed', 10]);
    const outdated = { ...recorded, version: `${Number(version) + 1}` };
    expect(await commitPage(pool, outdated)).toEqual(['outdated', 0]);
    expect(await commitResults(pool, [{ ...page, deliveries: [], isRecorded: true }])).toEqual(['claimed']);
    const all = { ...rowsFor(published, subscriptions), version, isRecorded: true };
    expect(await commitPage(pool, all)).toEqual(['duplicate', 0]);
    expect(await deliveriesOf(harness.database)).toHaveLength(510);
  });
});
