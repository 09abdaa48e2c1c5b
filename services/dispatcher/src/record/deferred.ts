import type { LaneJob } from '@runhook/contract';
import { inDays, type Pool, runStatement } from '@runhook/database';
import type { Delivery } from '../policy/next-step.ts';
import { PERMIT_CHARACTERS } from '../policy/permits.ts';
import {
  DELIVERY_COLUMNS,
  DELIVERY_JOINS,
  type DeliveryKey,
  type DeliveryRow,
  keyParameters,
  STILL_PENDING,
  toDelivery,
} from './deliveries.ts';

/*
 * A deferred delivery has no job in the queue. It waits in its row, and the job of its lane takes the deferred
 * deliveries, oldest first (docs/adr/0032-lanes.md).
 */

/**
 * SQL: a delivery is deferred and does not wait for another one of its run (record/run-order.ts). Without the literal,
 * PostgreSQL does not use the index of lanes.
 */
const IS_CLAIMABLE = `deferred_at < 'infinity'`;

// Materialized, so that no planner moves now() into the coalesce, in which Citus accepts only values of the row.
const DEFER = `
  WITH i AS MATERIALIZED (
    SELECT day, id, account_id, now() AS at
    FROM unnest($1::date[], $2::text[], $3::bigint[]) AS u (day, id, account_id)
    WHERE ${inDays('$4', 'u')}
  )
  UPDATE deliveries d
  SET deferred_at = coalesce(d.deferred_at, i.at), next_attempt_at = NULL
  FROM i
  WHERE d.day = i.day AND d.id = i.id AND d.account_id = i.account_id AND ${STILL_PENDING}
    AND ${inDays('$4', 'd')}`;

export async function deferDeliveries(pool: Pool, keys: readonly DeliveryKey[]): Promise<void> {
  await runStatement(pool, DEFER, keyParameters(keys), 'defer-deliveries');
}

// The partitions are in the order of their days, so the first pages of the index suffice. A locked row is still
// deferred; the UPDATE finds it by its key only, because a further condition could use another index, which is searched
// in every partition. Taken deliveries become due again when their attempt should have ended, so that the reconciler
// finds lost ones.
const CLAIM = `
  WITH next AS MATERIALIZED (
    SELECT day, id, account_id, event_id, created_at FROM deliveries
    WHERE account_id = $4 AND subscription_id = $1 AND ${IS_CLAIMABLE}
      AND ($5::int IS NULL OR attempt_count - cycle < $5)
    ORDER BY day, created_at, id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), sized AS MATERIALIZED (
    SELECT n.*, 1 + octet_length(e.data::text) / ${PERMIT_CHARACTERS} AS permits,
           sum(1 + octet_length(e.data::text) / ${PERMIT_CHARACTERS}) OVER (ORDER BY n.day, n.created_at, n.id) AS permits_to_here
    FROM next n JOIN events e ON e.day = n.day AND e.id = n.event_id AND e.account_id = n.account_id
    WHERE e.account_id = $4
  ), d AS (
    UPDATE deliveries d
    SET deferred_at = NULL, next_attempt_at = now() + $3::int * interval '1 millisecond'
    FROM sized n
    WHERE d.day = n.day AND d.id = n.id AND d.account_id = n.account_id AND d.account_id = $4
      AND n.permits_to_here <= greatest($6::int, n.permits)
    RETURNING d.*
  )
  SELECT ${DELIVERY_COLUMNS}
  FROM d ${DELIVERY_JOINS}
  WHERE e.account_id = $4
  ORDER BY d.day, d.created_at, d.id`;

/** Key of a lane: its subscription, and the account, which determines the partition of its rows in a distributed log. */
export type LaneKey = Required<LaneJob>;

export interface ClaimOptions extends LaneKey {
  limit: number;
  /** Maximum permits of all their attempts (policy/permits.ts); the oldest delivery may need more. */
  permitsMax: number;
  /** Maximum duration of an attempt. */
  attemptMs: number;
  /** Takes only deliveries with fewer attempts in their cycle. */
  attemptsBelow?: number | undefined;
}

/** Takes the oldest deferred deliveries of a lane, which are then no longer deferred. No other caller gets the same ones. */
export async function claimDeferred(pool: Pool, options: ClaimOptions): Promise<Delivery[]> {
  const { subscriptionId, accountId, limit, permitsMax, attemptMs, attemptsBelow = null } = options;
  const values = [subscriptionId, limit, attemptMs, accountId, attemptsBelow, permitsMax];
  const rows = await runStatement<DeliveryRow>(pool, CLAIM, values, 'claim-deferred');
  return rows.map(toDelivery);
}

const DEFERRED_KEYS = `
  SELECT id AS "deliveryId" FROM deliveries
  WHERE account_id = $2 AND subscription_id = $1 AND ${IS_CLAIMABLE}
  ORDER BY day, created_at, id
  LIMIT $3`;

/** Returns the keys of the oldest deferred deliveries of a lane, without taking them. */
export async function loadDeferredKeys(
  pool: Pool,
  { subscriptionId, accountId, limit }: Pick<ClaimOptions, keyof LaneKey | 'limit'>,
): Promise<DeliveryKey[]> {
  const values = [subscriptionId, accountId, limit];
  const rows = await runStatement<{ deliveryId: string }>(pool, DEFERRED_KEYS, values, 'deferred-keys');
  return rows.map(({ deliveryId }) => ({ deliveryId, accountId }));
}

const HAS_DEFERRED = `
  SELECT EXISTS (
    SELECT FROM deliveries WHERE account_id = $2 AND subscription_id = $1 AND ${IS_CLAIMABLE}) AS "hasDeferred"`;

/** Returns whether the lane has a delivery that its job can take. */
export async function hasDeferred(pool: Pool, { subscriptionId, accountId }: LaneKey): Promise<boolean> {
  const values = [subscriptionId, accountId];
  const [row] = await runStatement<{ hasDeferred: boolean }>(pool, HAS_DEFERRED, values, 'has-deferred');
  return row?.hasDeferred ?? false;
}

// Skips from one lane to the next by the index, however many deliveries each has deferred.
const LANES_WITH_DEFERRED = `
  SELECT s.id, s.account_id AS "accountId"
  FROM lanes_with_deferred($1, $2) AS waiting (id) JOIN subscriptions s USING (id)
  ORDER BY s.id`;

/** Returns subscriptions with deferred deliveries in the order of their ids, after the id `after`. */
export async function lanesWithDeferred(pool: Pool, after: string, limit: number): Promise<LaneKey[]> {
  const rows = await runStatement<{ id: string; accountId: string }>(
    pool,
    LANES_WITH_DEFERRED,
    [after, limit],
    'lanes-with-deferred',
  );
  return rows.map(({ id, accountId }) => ({ subscriptionId: id, accountId: Number(accountId) }));
}
