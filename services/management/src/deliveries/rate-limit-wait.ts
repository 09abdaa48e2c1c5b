// SQL by hand: compares times with PostgreSQL’s clock.
import { column, type Queryable, queryRows } from '@runhook/database';
import type { DeliveryView } from './delivery.ts';

// The job of a lane that waits for its limit draws at least every ten seconds.
const LIMITED_NOW = `
  SELECT s.id FROM subscriptions s JOIN rate_buckets b ON b.subscription_id = s.id
  WHERE s.id = ANY ($1::text[]) AND s.rate_limit IS NOT NULL AND s.active
    AND (s.blocked_until IS NULL OR s.blocked_until <= now()) AND b.limited_at > now() - interval '1 minute'`;

/**
 * Adds `waiting_for` to the deliveries that wait for the rate limit of their webhook (docs/contract.md#rate-limit). Reads
 * nothing if none waits in its lane.
 */
export async function addRateLimitWaits<View extends DeliveryView>(
  database: Queryable,
  views: readonly View[],
): Promise<View[]> {
  const subscriptionIds = new Set(views.filter(waitsInLane).map((view) => view.subscription_id));
  if (subscriptionIds.size === 0) return [...views];
  const rows = await queryRows(database, { id: column.text }, LIMITED_NOW, [[...subscriptionIds]]);
  const limited = new Set(rows.map(({ id }) => id));
  return views.map((view) =>
    waitsInLane(view) && limited.has(view.subscription_id)
      ? { ...view, waiting_for: { kind: 'rate_limit' } }
      : view,
  );
}

/** Whether a delivery waits in its lane, for no other delivery of its run. */
function waitsInLane({ status, next_attempt_at, waiting_for }: DeliveryView): boolean {
  return status === 'pending' && next_attempt_at === null && waiting_for === undefined;
}
