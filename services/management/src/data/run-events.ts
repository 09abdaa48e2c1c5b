import { idDay, type JobRunEvent } from '@runhook/contract';
import type { Transaction } from '@runhook/database';
import { runStatement } from '@runhook/database';

/**
 * Stores events and puts them on their way to the queue, in their order. `data` is JSON text, so keys keep theirs.
 * @param traceContext the trace of the call that caused them
 */
export async function insertEvents(
  transaction: Transaction,
  events: readonly JobRunEvent[],
  traceContext: string | null = null,
): Promise<void> {
  if (events.length === 0) return;
  await runStatement(
    transaction,
    `WITH given AS (
       SELECT * FROM unnest($1::date[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[])
         WITH ORDINALITY AS given (day, id, account_id, event_type, "timestamp", data, position)
     ), stored AS (
       INSERT INTO events (day, id, account_id, event_type, "timestamp", data, trace_context)
       SELECT day, id, account_id, event_type, "timestamp", data::json, $7 FROM given
     )
     INSERT INTO outbox (day, event_id) SELECT day, id FROM given ORDER BY position`,
    [
      events.map(({ eventId }) => idDay('event', eventId)),
      events.map(({ eventId }) => eventId),
      events.map(({ accountId }) => accountId),
      events.map(({ eventType }) => eventType),
      events.map(({ timestamp }) => timestamp),
      events.map(({ data }) => JSON.stringify(data)),
      traceContext,
    ],
  );
}
