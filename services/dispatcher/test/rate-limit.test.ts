import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor } from '@runhook/contract';
import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend } from '@runhook/testing';
import { drawTokens } from '../src/record/rate-buckets.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf } from './log-rows.ts';

const PER_SECOND = 25;
const BURST = PER_SECOND;
const COUNT = 60;
/** Time from the draw of a token to its request, and from the request to its record. */
const TOLERANCE_SECONDS = 1;

describe.each(oneQueueBackend())('webhooks with a rate limit, on $name', (backend) => {
  let harness: Harness;
  let limited: { id: string; name: string };
  beforeEach(async () => {
    harness = await openHarness(backend);
    limited = await harness.subscribe('/limited');
    await query('UPDATE subscriptions SET rate_limit = $1', [PER_SECOND]);
  });
  afterEach(() => harness.close());

  const query = (sql: string, values: unknown[] = []) => harness.database.pool.query(sql, values);
  const events = (count: number) =>
    Array.from({ length: count }, () => exampleEvent('job.run.started', harness.account.jobs[0] as never));

  /** Returns the starts of the attempts at the limited webhook, in seconds. */
  async function startsOfAttempts(): Promise<number[]> {
    const { rows } = await query(
      `SELECT extract(epoch FROM a.started_at)::float8 AS seconds
       FROM deliveries d JOIN logged_attempts a ON a.day = d.day AND a.delivery_id = d.id
       WHERE d.subscription_id = $1 ORDER BY 1`,
      [limited.id],
    );
    return rows.map(({ seconds }) => seconds);
  }

  async function everyDelivery(count: number, status: string): Promise<void> {
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter((row) => row.status === status)).toHaveLength(count);
    });
  }

  /** Inserts deliveries as redeliveries of the limited webhook, with their jobs. */
  async function redeliver(count: number): Promise<void> {
    const commits = events(count).map((event) => {
      const id = deliveryIdFor(event.eventId, limited.id);
      const delivery = { id, subscriptionId: limited.id, webhookName: limited.name, isDeferred: false };
      return { event, version: null, deliveries: [delivery] };
    });
    await commitResults(harness.database.pool, commits);
    const { rows } = await query(
      `UPDATE deliveries SET next_attempt_at = now(), trigger = 'manual' RETURNING id`,
    );
    const queue = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    const job = { cycle: 0, accountId: harness.account.id, delayMs: 0, attemptsLeft: 6 };
    await queue.add(rows.map(({ id }) => ({ ...job, deliveryId: id })));
    await queue.close();
  }

  test('two dispatchers keep the limit of first attempts and retries together, while others have none', async () => {
    await harness.subscribe('/free');
    // Every fifth request fails at first.
    harness.receiver.respondWith(({ path }, index) => ({
      status: path === '/limited' && index % 5 === 0 ? 500 : 200,
    }));
    await Promise.all([harness.startDispatcher(), harness.startDispatcher()]);
    await harness.publisher.publishMany(events(COUNT));
    // Tokens of a dispatcher that dies after its draw are lost.
    const lost = await drawTokens(harness.database.pool, limited.id, 3);
    await everyDelivery(2 * COUNT, 'delivered');
    const starts = await startsOfAttempts();
    expect(starts.length).toBeGreaterThan(COUNT);
    expect(starts).toHaveLength(harness.receiver.requests.filter(({ path }) => path === '/limited').length);
    const excess = starts.flatMap((first, from) =>
      starts.slice(from).flatMap((last, index) => {
        const permitted = BURST + PER_SECOND * (last - first + TOLERANCE_SECONDS);
        return index + 1 > permitted ? [{ first, last, count: index + 1 }] : [];
      }),
    );
    expect({ excess, lost: lost?.rate }).toEqual({ excess: [], lost: PER_SECOND });
  });

  test('deliveries beyond the limit wait in their lane without an attempt', async () => {
    // One request, and the next one after almost three hours.
    await query('UPDATE subscriptions SET rate_limit = 0.0001');
    await harness.startDispatcher();
    await harness.publisher.publishMany(events(20));
    await everyDelivery(1, 'delivered');
    await eventually(async () => {
      const { rows } = await query(
        `SELECT count(*)::int AS count FROM deliveries WHERE deferred_at IS NOT NULL AND attempt_count = 0`,
      );
      expect(rows).toEqual([{ count: 19 }]);
      const { rowCount } = await query('SELECT FROM rate_buckets WHERE limited_at IS NOT NULL');
      expect(rowCount).toBe(1);
    });
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('a lane whose last delivery took the last token does not count as waiting for the limit', async () => {
    await query('UPDATE subscriptions SET rate_limit = 0.0001');
    const { stop } = await harness.startDispatcher();
    await harness.publisher.publishMany(events(1));
    await everyDelivery(1, 'delivered');
    // Waits for the job of the lane.
    await stop();
    const { rows } = await query('SELECT floor(tokens)::int AS tokens, limited_at FROM rate_buckets');
    expect(rows).toEqual([{ tokens: 0, limited_at: null }]);
  });

  test('redeliveries count for the limit', async () => {
    await query('UPDATE subscriptions SET rate_limit = 0.0001');
    await harness.startDispatcher();
    await redeliver(5);
    await everyDelivery(1, 'delivered');
    await eventually(async () => {
      expect((await query('SELECT FROM deliveries WHERE deferred_at IS NOT NULL')).rowCount).toBe(4);
      expect((await query('SELECT FROM rate_buckets WHERE limited_at IS NOT NULL')).rowCount).toBe(1);
    });
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('a redelivery during a block by Retry-After takes a token, and waits in the queue without one', async () => {
    await query(
      `UPDATE subscriptions SET rate_limit = 0.0001, probe_at = now() + interval '1 hour',
         blocked_until = now() + interval '1 hour'`,
    );
    harness.receiver.respondWith(503);
    await harness.startDispatcher();
    await redeliver(3);
    await harness.receiver.waitFor(1);
    await eventually(async () => {
      const { rows } = await query(
        `SELECT count(*) FILTER (WHERE attempt_count = 1)::int AS attempted,
           count(*) FILTER (WHERE attempt_count = 0 AND deferred_at IS NULL)::int AS queued FROM deliveries`,
      );
      expect(rows).toEqual([{ attempted: 1, queued: 2 }]);
    });
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('a pass that ends returns the tokens that it did not use', async () => {
    await harness.startDispatcher();
    await harness.publisher.publishMany(events(1));
    await everyDelivery(1, 'delivered');
    await eventually(async () => {
      const { rows } = await query('SELECT tokens FROM rate_buckets');
      expect(rows[0]?.tokens).toBeGreaterThanOrEqual(BURST - 1);
    });
  });
});
