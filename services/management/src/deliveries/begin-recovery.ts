// SQL by hand: counts the deliveries and inserts the recovery in one statement, with a window exact to the microsecond.
import type { EventInclusion } from '@runhook/database';
import type { Prisma } from '@runhook/database/prisma';
import { timestampOf } from './delivery.ts';

export interface RecoveryKey {
  id: string;
  accountId: number;
  subscriptionId: string;
}

export interface NewRecovery extends RecoveryKey {
  /** Microseconds since the epoch, as digits. */
  since: string;
  /** The same format as `since`; null for the current time. */
  until: string | null;
  deliveryStatus: string;
}

// A unique index permits one running recovery of a subscription, so of two concurrent inserts one adds nothing.
const SUBSCRIPTION = `
  FROM subscriptions s
  WHERE s.account_id = $3 AND s.id = $2 AND s.active AND s.deleted_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM recoveries WHERE subscription_id = $2 AND status = 'running')`;

// Days after the one that follows `until` are not read, as in the list of deliveries. Deliveries that complete later do
// not match, because this recovery may have redelivered them. The dispatcher's pages use the same conditions.
const INSERT = `
  WITH asked AS (
    SELECT s.id AS subscription_id, ${timestampOf('$4')} AS since, COALESCE(${timestampOf('$5')}, now()) AS until
    ${SUBSCRIPTION}
  ), counted AS (
    SELECT count(*)::int AS total
    FROM deliveries d, asked
    WHERE d.account_id = $3 AND d.subscription_id = $2 AND d.status = $6 AND d.status IN ('failed', 'cancelled')
      AND d.created_at >= asked.since AND d.created_at < asked.until
      AND d.day <= (asked.until AT TIME ZONE 'UTC')::date + 1
      AND d.completed_at <= now()
  )
  INSERT INTO recoveries (id, subscription_id, status, since, until, delivery_status, total_count, completed_at)
  SELECT $1, asked.subscription_id, CASE total WHEN 0 THEN 'done' ELSE 'running' END, asked.since, asked.until, $6,
    total, CASE total WHEN 0 THEN now() END
  FROM asked, counted
  ON CONFLICT (subscription_id) WHERE status = 'running' DO NOTHING
  RETURNING id`;

/**
 * Counts the matching deliveries and inserts a recovery of them, which is done at once if there are none. Returns false
 * if the subscription is inactive, deleted, or has a running recovery.
 */
export async function insertRecovery(
  transaction: Prisma.TransactionClient,
  recovery: NewRecovery,
): Promise<boolean> {
  const { id, accountId, subscriptionId, since, until, deliveryStatus } = recovery;
  const values = [id, subscriptionId, accountId, since, until, deliveryStatus];
  return (await transaction.$queryRawUnsafe<unknown[]>(INSERT, ...values)).length > 0;
}

export interface NewEventRecovery extends RecoveryKey {
  include: EventInclusion;
  resendDelivered: boolean;
  /** Microseconds since the epoch, as digits. */
  since: string;
  until: string;
  totalCount: number;
  countLimited: boolean;
}

const INSERT_OF_EVENTS = `
  INSERT INTO recoveries (id, subscription_id, status, since, until, include, resend_delivered, total_count,
    count_limited, completed_at)
  SELECT $1, s.id, CASE WHEN $8 > 0 OR $9 THEN 'running' ELSE 'done' END, ${timestampOf('$4')}, ${timestampOf('$5')},
    $6, $7, $8, $9, CASE WHEN $8 > 0 OR $9 THEN NULL ELSE now() END
  ${SUBSCRIPTION}
  ON CONFLICT (subscription_id) WHERE status = 'running' DO NOTHING
  RETURNING id`;

/** Inserts a recovery of events that were counted before, as {@link insertRecovery}. */
export async function insertEventRecovery(
  transaction: Prisma.TransactionClient,
  recovery: NewEventRecovery,
): Promise<boolean> {
  const { id, accountId, subscriptionId, since, until } = recovery;
  const { include, resendDelivered, totalCount, countLimited } = recovery;
  const values = [
    ...[id, subscriptionId, accountId, since, until],
    ...[include, resendDelivered, totalCount, countLimited],
  ];
  return (await transaction.$queryRawUnsafe<unknown[]>(INSERT_OF_EVENTS, ...values)).length > 0;
}
