import type { JobRunEvent } from '@runhook/contract';
import { type Queryable, runStatement } from '@runhook/database';

interface Row {
  eventId: string;
  eventType: string;
  accountId: string;
  timestamp: string;
  data: JobRunEvent['data'];
}

const FORGOTTEN = `
  SELECT e.id AS "eventId", e.event_type AS "eventType", e.account_id AS "accountId", e."timestamp", e.data
  FROM events e
  WHERE e.fanned_out_at IS NULL AND e.created_at < now() - $1::int * interval '1 millisecond'
    AND NOT EXISTS (SELECT FROM outbox o WHERE o.day = e.day AND o.event_id = e.id)
  ORDER BY e.created_at
  LIMIT $2`;

/** Events that management committed, that left the outbox, and that nobody fanned out. Oldest first. */
export async function forgottenEvents(
  database: Queryable,
  options: { graceMs: number; limit: number },
): Promise<JobRunEvent[]> {
  const rows = await runStatement<Row & { [column: string]: unknown }>(
    database,
    FORGOTTEN,
    [options.graceMs, options.limit],
    'forgotten-events',
  );
  return rows.map(({ eventId, eventType, accountId, timestamp, data }) => {
    return { eventId, eventType, accountId: Number(accountId), timestamp, data } as JobRunEvent;
  });
}
