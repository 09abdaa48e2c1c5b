import { type Database, runStatement } from '@runhook/database';
import type { DeliveryFilters } from './delivery-filters.ts';
import { timestampOf } from './micros.ts';

type Pool = Database['pool'];

/** How many deliveries of a subscription and an event type are in a partition and were created in an hour. */
export interface HourCount {
  /** `YYYY-MM-DD`. */
  day: string;
  /** Hours since the epoch. */
  hour: number;
  eventType: string;
  deliveries: number;
}

export const HOUR_MICROS = 3_600_000_000n;

/** What is counted: deliveries of a subscription created at or after `since` and before `until`. */
export interface HourQuery {
  subscriptionId: string;
  eventType: string | null;
  status: DeliveryFilters['status'];
  /** Microseconds since the epoch; null where it is open. */
  since: bigint | null;
  until: bigint | null;
}

/**
 * The hours that have any, in no order. `not delivered` is asked of the indexes of what is pending or failed.
 * @param query `byEventType` parts an hour by event type, which reads the rows; else `eventType` is "" in the answer
 */
export async function countHours(
  pool: Pool,
  query: Omit<HourQuery, 'status'> & { status: HourQuery['status'] | 'not delivered'; byEventType: boolean },
): Promise<HourCount[]> {
  const { subscriptionId, eventType, status, since, until } = query;
  const statuses =
    status === 'not delivered'
      ? [`d.status IN ('failed', 'cancelled')`, `d.status = 'pending'`]
      : [status === null ? 'true' : 'd.status = $5'];
  const where = `d.subscription_id = $1 AND ($2::text IS NULL OR d.event_type = $2)
    AND ($3::bigint IS NULL OR d.created_at >= ${timestampOf('$3')})
    AND ($4::bigint IS NULL OR d.created_at < ${timestampOf('$4')})`;
  const type = query.byEventType ? 'd.event_type' : `''::text`;
  const counted = statuses.map(
    (
      one,
    ) => `SELECT d.day, date_bin('1 hour', d.created_at, timestamptz 'epoch') AS hour, ${type} AS event_type,
        count(*) AS deliveries
      FROM deliveries d WHERE ${where} AND ${one} GROUP BY 1, 2, 3`,
  );
  const values = [subscriptionId, eventType, since, until].map((value) => value?.toString() ?? null);
  return await runStatement<HourCount & { [column: string]: unknown }>(
    pool,
    `SELECT day::text, (extract(epoch FROM hour) / 3600)::int AS hour, event_type AS "eventType", deliveries::int
     FROM (${counted.join(' UNION ALL ')}) counted`,
    status === 'not delivered' || status === null ? values : [...values, status],
  );
}
