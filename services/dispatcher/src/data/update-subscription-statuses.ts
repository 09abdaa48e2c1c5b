import { runStatement } from '@runhook/database';
import type pg from 'pg';

export interface SubscriptionStatus {
  subscriptionId: string;
  /** The start of the latest attempt. */
  dispatchedAt: Date;
  httpStatusCode: number;
}

/** An older attempt, of another dispatcher perhaps, never overwrites a newer one. `updated_at` is the owner's. */
const UPDATE_STATUSES = `
  UPDATE subscriptions s
  SET dispatched_at = i.dispatched_at, http_status_code = i.http_status_code
  FROM unnest($1::text[], $2::timestamptz[], $3::int[]) AS i (id, dispatched_at, http_status_code)
  WHERE s.id = i.id AND (s.dispatched_at IS NULL OR s.dispatched_at <= i.dispatched_at)`;

export async function updateSubscriptionStatuses(
  pool: pg.Pool,
  statuses: readonly SubscriptionStatus[],
): Promise<void> {
  // Sorted, so that two dispatchers that update the same rows cannot wait for each other in a circle.
  const sorted = [...statuses].sort((a, b) => (a.subscriptionId < b.subscriptionId ? -1 : 1));
  await runStatement(
    pool,
    UPDATE_STATUSES,
    [
      sorted.map(({ subscriptionId }) => subscriptionId),
      sorted.map(({ dispatchedAt }) => dispatchedAt.toISOString()),
      sorted.map(({ httpStatusCode }) => httpStatusCode),
    ],
    'update-subscription-statuses',
  );
}
