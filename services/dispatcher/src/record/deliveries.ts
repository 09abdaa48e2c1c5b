import { type DeliveryJob, type EventKey, idDay, type JobRunEvent, type LaneJob } from '@runhook/contract';
import { distinctDays, inDays, type Pool, runStatement, type StoredEventData } from '@runhook/database';
import type { Delivery } from '../policy/next-step.ts';
import { TARGET_COLUMNS, type TargetRow, toTarget } from '../target.ts';

/** A row with {@link DELIVERY_COLUMNS}. */
export interface DeliveryRow extends TargetRow {
  id: string;
  day: string;
  status: Delivery['status'];
  trigger: Delivery['trigger'];
  recovered: boolean;
  cycle: number;
  attempt_count: number;
  next_attempt_at_ms: string | null;
  deferred: boolean;
  webhook_name: string;
  subscription_id: string;
  event_id: string;
  account_id: string;
  event_type: string;
  timestamp: string;
  data: StoredEventData;
}

/** Columns of deliveries `d`, their events and their subscriptions; see {@link toDelivery}. */
export const DELIVERY_COLUMNS = `
  d.id, d.day::text AS day, d.status, d.trigger, d.recovery_id IS NOT NULL AS recovered, d.cycle, d.attempt_count,
  (extract(epoch FROM d.next_attempt_at) * 1000)::bigint AS next_attempt_at_ms, d.deferred_at IS NOT NULL AS deferred,
  d.webhook_name, d.subscription_id, e.id AS event_id, e.account_id, e.event_type, e."timestamp", e.data,
  ${TARGET_COLUMNS}`;

export const DELIVERY_JOINS = `
  JOIN events e ON e.day = d.day AND e.id = d.event_id AND e.account_id = d.account_id
  LEFT JOIN subscriptions s ON s.id = d.subscription_id
  LEFT JOIN accounts a ON a.id = s.account_id`;

const LOAD_DELIVERIES = `
  SELECT ${DELIVERY_COLUMNS}
  FROM unnest($1::date[], $2::text[], $3::bigint[]) AS k (day, id, account_id)
  JOIN deliveries d ON d.day = k.day AND d.id = k.id AND d.account_id = k.account_id ${DELIVERY_JOINS}
  WHERE ${inDays('$4', 'k', 'd', 'e')}`;

/** Key of a delivery. Its id contains its day. */
export type DeliveryKey = Required<Pick<DeliveryJob, 'deliveryId' | 'accountId'>>;

/** Loads the deliveries by one query, in input order; null for one whose row no longer exists. */
export async function loadDeliveries(pool: Pool, keys: readonly DeliveryKey[]): Promise<(Delivery | null)[]> {
  const rows = await runStatement<DeliveryRow>(pool, LOAD_DELIVERIES, keyParameters(keys), 'load-deliveries');
  const deliveriesById = new Map(rows.map((row) => [row.id, toDelivery(row)]));
  return keys.map(({ deliveryId }) => deliveriesById.get(deliveryId) ?? null);
}

/** Returns the first four parameters of a statement over deliveries: their keys, and the days for {@link inDays}. */
export function keyParameters(
  keys: readonly DeliveryKey[],
): [days: string[], ids: string[], accountIds: number[], distinctDays: string[]] {
  const days = keys.map(({ deliveryId }) => idDay('delivery', deliveryId));
  const ids = keys.map(({ deliveryId }) => deliveryId);
  return [days, ids, keys.map(({ accountId }) => accountId), distinctDays(days)];
}

const ACCOUNT_OF_DELIVERY = 'SELECT account_id AS "accountId" FROM deliveries WHERE day = $1 AND id = $2';
const ACCOUNT_OF_LANE = 'SELECT account_id AS "accountId" FROM subscriptions WHERE id = $1';

/** Returns the account of a job that does not name it; null when its row is gone. Searches all accounts. */
export async function loadAccountId(pool: Pool, job: DeliveryJob | LaneJob): Promise<number | null> {
  const [text, values, name] =
    'deliveryId' in job
      ? [ACCOUNT_OF_DELIVERY, [idDay('delivery', job.deliveryId), job.deliveryId], 'account-of-delivery']
      : [ACCOUNT_OF_LANE, [job.subscriptionId], 'account-of-lane'];
  const [row] = await runStatement<{ accountId: string }>(pool, text, values, name);
  return row === undefined ? null : Number(row.accountId);
}

export function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    day: row.day,
    status: row.status,
    trigger: row.trigger,
    isRecovered: row.recovered,
    cycle: row.cycle,
    attemptCount: row.attempt_count,
    nextAttemptAtMs: row.next_attempt_at_ms === null ? null : Number(row.next_attempt_at_ms),
    isDeferred: row.deferred,
    webhookName: row.webhook_name,
    subscriptionId: row.subscription_id,
    event: {
      eventId: row.event_id,
      eventType: row.event_type,
      accountId: Number(row.account_id),
      timestamp: row.timestamp,
      data: row.data,
    } as JobRunEvent,
    target: toTarget(row),
  };
}

export interface PendingDelivery {
  id: string;
  cycle: number;
  attemptCount: number;
  /** Milliseconds until the next attempt is due, or until the first one should have ended; 0 if that has passed. */
  delayMs: number;
}

// A dispatcher starts a first attempt immediately after the commit. One that lost the lock of its job in an outage may
// still be making the attempt when the job is repeated; a killed one cannot.
const PENDING_OF_EVENT = `
  SELECT id, cycle, attempt_count AS "attemptCount",
         greatest(0, coalesce((extract(epoch FROM
           CASE WHEN attempt_count = 0 THEN greatest(next_attempt_at, created_at + $3::int * interval '1 millisecond')
                ELSE next_attempt_at END - now()) * 1000)::int, 0)) AS "delayMs"
  FROM deliveries
  WHERE day = $1 AND account_id = $4 AND event_id = $2 AND status = 'pending' AND deferred_at IS NULL`;

/**
 * Returns the deliveries that an interrupted job of an event left pending. Deferred ones are left to their lane.
 * @param attemptMs time after its plan (`created_at`) for which a first attempt may be in flight
 */
export async function loadPendingDeliveries(
  pool: Pool,
  { eventId, accountId }: EventKey,
  attemptMs: number,
): Promise<PendingDelivery[]> {
  return await runStatement<PendingDelivery & { [column: string]: unknown }>(
    pool,
    PENDING_OF_EVENT,
    [idDay('event', eventId), eventId, attemptMs, accountId],
    'pending-of-event',
  );
}

/**
 * SQL: a delivery `d` that is selected by its key is pending. Not written with `=`, because the planner could then use
 * the index of pending deliveries, which it would search in every partition of the log.
 */
export const STILL_PENDING = `d.status NOT IN ('delivered', 'failed', 'cancelled')`;

const CANCEL_DELIVERIES = `
  UPDATE deliveries d
  SET status = 'cancelled', reason = i.reason, completed_at = now(), next_attempt_at = NULL, deferred_at = NULL
  FROM unnest($1::date[], $2::text[], $3::bigint[], $5::text[]) AS i (day, id, account_id, reason)
  WHERE d.day = i.day AND d.id = i.id AND d.account_id = i.account_id AND ${STILL_PENDING}
    AND ${inDays('$4', 'i', 'd')}`;

export interface Cancellation extends DeliveryKey {
  reason: string;
}

export async function cancelDeliveries(pool: Pool, cancellations: readonly Cancellation[]): Promise<void> {
  await runStatement(
    pool,
    CANCEL_DELIVERIES,
    [...keyParameters(cancellations), cancellations.map(({ reason }) => reason)],
    'cancel-deliveries',
  );
}
