import type { LaneJob } from '@runhook/contract';
import { type Pool, runStatement } from '@runhook/database';
import type { Delivery } from '../policy/next-step.ts';
import { DELIVERY_COLUMNS, DELIVERY_JOINS, type DeliveryRow, dayAndIds, toDelivery } from './deliveries.ts';

/*
 * A delivery that finds no slot in its lane costs the queue nothing: its row says that it is parked, and the lane's job
 * takes the parked ones, the oldest first (docs/adr/0032-lanes.md).
 */

const PARK = `
  UPDATE deliveries d
  SET parked_at = coalesce(d.parked_at, now()), next_attempt_at = NULL
  FROM unnest($1::date[], $2::text[]) AS i (day, id)
  WHERE d.day = i.day AND d.id = i.id AND d.status = 'pending'`;

export async function parkDeliveries(pool: Pool, ids: readonly string[]): Promise<void> {
  await runStatement(pool, PARK, dayAndIds(ids), 'park-deliveries');
}

// The partitions are in the order of their days, so the first pages of the index answer. Whoever takes deliveries owes
// them an attempt: they are due again, for the reconciler to find, when it should have ended.
const TAKE = `
  WITH next AS MATERIALIZED (
    SELECT day, id FROM deliveries
    WHERE subscription_id = $1 AND parked_at IS NOT NULL
    ORDER BY day, created_at, id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), d AS (
    UPDATE deliveries d
    SET parked_at = NULL, next_attempt_at = now() + $3::int * interval '1 millisecond'
    FROM next n WHERE d.day = n.day AND d.id = n.id AND d.parked_at IS NOT NULL
    RETURNING d.*
  )
  SELECT ${DELIVERY_COLUMNS}
  FROM d ${DELIVERY_JOINS}
  ORDER BY d.day, d.created_at, d.id`;

export interface TakeOptions {
  subscriptionId: string;
  limit: number;
  /** How long an attempt may take. */
  attemptMs: number;
}

/** The oldest parked deliveries of a lane, which are parked no longer. Nobody else gets the same. */
export async function takeParked(pool: Pool, options: TakeOptions): Promise<Delivery[]> {
  const { subscriptionId, limit, attemptMs } = options;
  const rows = await runStatement<DeliveryRow>(pool, TAKE, [subscriptionId, limit, attemptMs], 'take-parked');
  return rows.map(toDelivery);
}

const HAS_PARKED = `
  SELECT account_id AS "accountId" FROM deliveries WHERE subscription_id = $1 AND parked_at IS NOT NULL LIMIT 1`;

/** The account of a lane with parked deliveries; null when it has none. */
export async function accountWithParked(pool: Pool, subscriptionId: string): Promise<number | null> {
  const [row] = await runStatement<{ accountId: string }>(pool, HAS_PARKED, [subscriptionId], 'has-parked');
  return row ? Number(row.accountId) : null;
}

// From one lane to the next by the index, however much each has parked.
const WAITING = `
  WITH RECURSIVE lane (id) AS (
    (SELECT subscription_id FROM deliveries
     WHERE parked_at IS NOT NULL AND subscription_id > $1
     ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT subscription_id FROM deliveries
            WHERE parked_at IS NOT NULL AND subscription_id > lane.id
            ORDER BY subscription_id LIMIT 1)
    FROM lane WHERE lane.id IS NOT NULL
  )
  SELECT s.id, s.account_id AS "accountId"
  FROM (SELECT id FROM lane WHERE id IS NOT NULL LIMIT $2) AS waiting JOIN subscriptions s USING (id)
  ORDER BY s.id`;

/** Subscriptions with parked deliveries, in the order of their ids, after the one named. */
export async function waitingLanes(pool: Pool, after: string, limit: number): Promise<Required<LaneJob>[]> {
  const rows = await runStatement<{ id: string; accountId: string }>(
    pool,
    WAITING,
    [after, limit],
    'waiting-lanes',
  );
  return rows.map(({ id, accountId }) => ({ subscriptionId: id, accountId: Number(accountId) }));
}

const EXPIRE = `
  WITH old AS MATERIALIZED (
    SELECT day, id FROM deliveries
    WHERE parked_at < now() - $1::int * interval '1 second'
    ORDER BY parked_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), expired AS (
    UPDATE deliveries d
    SET status = 'failed', reason = $3, completed_at = now(), parked_at = NULL
    FROM old WHERE d.day = old.day AND d.id = old.id AND d.parked_at IS NOT NULL
    RETURNING 1
  )
  SELECT count(*)::int AS expired FROM expired`;

/** Gives up what is parked for too long, and answers how many that were. */
export async function expireParked(
  pool: Pool,
  { maxSeconds, limit, reason }: { maxSeconds: number; limit: number; reason: string },
): Promise<number> {
  const values = [maxSeconds, limit, reason];
  const [row] = await runStatement<{ expired: number }>(pool, EXPIRE, values, 'expire-parked');
  return row?.expired ?? 0;
}
