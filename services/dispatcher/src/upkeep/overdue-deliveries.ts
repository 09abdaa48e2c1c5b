import { type Queryable, runStatement } from '@runhook/database';

/** A pending delivery whose time has passed, as far as the reconciler needs it. */
export interface OverdueDelivery {
  id: string;
  eventId: string;
  cycle: number;
  attemptCount: number;
  /** Where the next page begins: microseconds since the epoch as digits, with the id to part those of one moment. */
  dueMicros: string;
}

export type OverdueCursor = Pick<OverdueDelivery, 'dueMicros' | 'id'>;

export const FIRST_OVERDUE: OverdueCursor = { dueMicros: '0', id: '' };

const PAGE = `
  SELECT id, event_id AS "eventId", cycle, attempt_count AS "attemptCount",
         (extract(epoch FROM next_attempt_at) * 1000000)::bigint AS "dueMicros"
  FROM deliveries
  WHERE status = 'pending' AND next_attempt_at < now() - $1::int * interval '1 millisecond'
    AND (next_attempt_at, id) > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3)
  ORDER BY next_attempt_at, id
  LIMIT $4`;

/** Longest overdue first. */
export async function overdueDeliveries(
  database: Queryable,
  page: { graceMs: number; after: OverdueCursor; limit: number },
): Promise<OverdueDelivery[]> {
  const values = [page.graceMs, page.after.dueMicros, page.after.id, page.limit];
  return await runStatement<OverdueDelivery & { [column: string]: unknown }>(
    database,
    PAGE,
    values,
    'overdue-deliveries',
  );
}
