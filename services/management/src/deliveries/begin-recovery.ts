// SQL by hand: counts the deliveries and inserts the recovery in one statement, with a window exact to the microsecond.
import type { Prisma } from '@runhook/database/prisma';
import { timestampOf } from './delivery.ts';

export interface NewRecovery {
  id: string;
  accountId: number;
  subscriptionId: string;
  /** Microseconds since the epoch, as digits. */
  since: string;
  /** The same format as `since`; null for the current time. */
  until: string | null;
  deliveryStatus: string;
}

// A unique index permits one running recovery of a subscription, so of two concurrent inserts one adds nothing. Days
// after the one that follows `until` are not read, as in the list of deliveries. Deliveries that complete later do not
// match, because this recovery may have redelivered them. The dispatcher's pages use the same conditions.
const INSERT = `
  WITH asked AS (
    SELECT s.id AS subscription_id, ${timestampOf('$3')} AS since, COALESCE(${timestampOf('$4')}, now()) AS until
    FROM subscriptions s
    WHERE s.account_id = $6 AND s.id = $2 AND s.active AND s.deleted_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM recoveries WHERE subscription_id = $2 AND status = 'running')
  ), counted AS (
    SELECT count(*)::int AS total
    FROM deliveries d, asked
    WHERE d.account_id = $6 AND d.subscription_id = $2 AND d.status = $5 AND d.status IN ('failed', 'cancelled')
      AND d.created_at >= asked.since AND d.created_at < asked.until
      AND d.day <= (asked.until AT TIME ZONE 'UTC')::date + 1
      AND d.completed_at <= now()
  )
  INSERT INTO recoveries (id, subscription_id, status, since, until, delivery_status, total_count, completed_at)
  SELECT $1, asked.subscription_id, CASE total WHEN 0 THEN 'done' ELSE 'running' END, asked.since, asked.until, $5,
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
  const values = [id, subscriptionId, since, until, deliveryStatus, accountId];
  return (await transaction.$queryRawUnsafe<unknown[]>(INSERT, ...values)).length > 0;
}
