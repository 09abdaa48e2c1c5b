// SQL by hand: the hot path; batches of events, under an advisory lock.
import { type Queryable, runStatement, type Transaction } from '@runhook/database';
import type { IdentifiedEvent } from '@runhook/queue';

/** A row of the outbox. `event` is null when retention has removed it: there is nothing left to send. */
export interface OutboxRow {
  sequence: string;
  event: IdentifiedEvent | null;
  /** The trace of the call that caused the event. */
  traceContext: string | null;
}

interface JoinedRow {
  sequence: string;
  id: string | null;
  account_id: string;
  event_type: string;
  timestamp: string;
  data: unknown;
  trace_context: string | null;
}

/** Whether this transaction is now the one that moves the outbox; it stays so until it ends. */
export async function tryRelayLock(transaction: Transaction): Promise<boolean> {
  const [row] = await runStatement<{ taken: boolean }>(
    transaction,
    `SELECT pg_try_advisory_xact_lock(hashtext('runhook.relay')) AS taken`,
    [],
  );
  return row?.taken ?? false;
}

/**
 * The oldest rows. Must be a statement of its own after {@link tryRelayLock}: one that began before the lock was
 * granted may still see rows that the former holder has deleted.
 */
export async function readOutbox(transaction: Transaction, limit: number): Promise<OutboxRow[]> {
  const rows = await runStatement<JoinedRow>(
    transaction,
    `SELECT outbox.sequence, events.id, events.account_id, events.event_type, events."timestamp", events.data,
       events.trace_context
     FROM outbox LEFT JOIN events ON events.day = outbox.day AND events.id = outbox.event_id
     ORDER BY outbox.sequence LIMIT $1`,
    [limit],
  );
  return rows.map((row) => ({
    sequence: row.sequence,
    event: row.id === null ? null : toEvent(row, row.id),
    traceContext: row.trace_context,
  }));
}

export async function deleteFromOutbox(
  transaction: Transaction,
  sequences: readonly string[],
): Promise<void> {
  await runStatement(transaction, 'DELETE FROM outbox WHERE sequence = ANY($1::bigint[])', [sequences]);
}

export async function countOutbox(database: Queryable): Promise<number> {
  const [row] = await runStatement<{ count: string }>(database, 'SELECT count(*) FROM outbox', []);
  return Number(row?.count);
}

const COUNTED_MAX = 100_000;

/** What waits; a few rows of the index for the age, and a count with a bound. */
const OUTBOX_LAG = `
  SELECT (SELECT count(*)::int FROM (SELECT FROM outbox LIMIT ${COUNTED_MAX}) AS counted) AS events,
         (SELECT extract(epoch FROM now() - events.created_at)::float8
          FROM (SELECT day, event_id FROM outbox ORDER BY sequence LIMIT 1) AS first
          JOIN events ON events.day = first.day AND events.id = first.event_id) AS "oldestSeconds"`;

export async function measureOutbox(database: Queryable): Promise<{ events: number; oldestSeconds: number }> {
  const [row] = await runStatement<{ events: number; oldestSeconds: number | null }>(
    database,
    OUTBOX_LAG,
    [],
    'outbox-lag',
  );
  return { events: row?.events ?? 0, oldestSeconds: Math.max(0, row?.oldestSeconds ?? 0) };
}

/** Stored by {@link insertEvents}, so its parts fit together. */
function toEvent(row: JoinedRow, eventId: string): IdentifiedEvent {
  return {
    eventId,
    eventType: row.event_type,
    accountId: Number(row.account_id),
    timestamp: row.timestamp,
    data: row.data,
  } as IdentifiedEvent;
}
