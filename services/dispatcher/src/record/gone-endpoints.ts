import { type Pool, runStatement } from '@runhook/database';
import { ADMINS } from './admins.ts';

/** An endpoint whose response says that it will never accept anything again. */
export interface GoneEndpoint {
  subscriptionId: string;
  /** Address that has responded. */
  clientUrl: string;
  /** Time of the subscription's last change by a request, as the attempt has read it: digits, in microseconds. */
  updatedAt: string;
  /** A sentence for the owner. */
  reason: string;
}

// A change since the attempt was planned may be another address or another activation, for which the response says nothing.
const DEACTIVATE = `
  WITH changed AS (
    UPDATE subscriptions SET active = false, deactivate_reason = $4, failure_notified_at = NULL
    WHERE id = $1 AND client_url = $2 AND updated_at_micros = $3::bigint AND active AND deleted_at IS NULL
    RETURNING id, account_id, coalesce(failing_since, now()) AS failing_since,
      greatest(consecutive_failures, 1) AS consecutive_failures
  ), notified AS (
    INSERT INTO notices (kind, subscription_id, email, occurred_at, failures)
    SELECT 'deactivated', changed.id, u.email, changed.failing_since, changed.consecutive_failures
    FROM changed ${ADMINS}
    WHERE $5
  )
  SELECT id FROM changed`;

/** Deactivates the subscription, and returns whether it did. */
export async function deactivateGone(
  pool: Pool,
  { subscriptionId, clientUrl, updatedAt, reason }: GoneEndpoint,
  shouldNotifyAdmins: boolean,
): Promise<boolean> {
  const values = [subscriptionId, clientUrl, updatedAt, reason, shouldNotifyAdmins];
  const rows = await runStatement(pool, DEACTIVATE, values, 'deactivate-gone');
  return rows.length > 0;
}
