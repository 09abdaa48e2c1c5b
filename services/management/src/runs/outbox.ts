// SQL by hand: the hot path; batches of events, under an advisory lock.
import { EVENT_TYPES } from '@runhook/contract';
import {
  column,
  type Queryable,
  queryRows,
  type RowOf,
  runStatement,
  type Transaction,
} from '@runhook/database';
import type { IdentifiedEvent } from '@runhook/queue';
import type { SnapshotEdges } from './outbox-bound.ts';

/** A row of the outbox. `event` is null when retention has removed it: there is nothing left to send. */
export interface OutboxRow {
  sequence: string;
  event: IdentifiedEvent | null;
  /** The trace of the call that caused the event. */
  traceContext: string | null;
}

/** An event's columns are null when retention has removed it. */
const JOINED = {
  sequence: column.digits,
  id: column.orNull(column.text),
  account_id: column.orNull(column.digits),
  event_type: column.orNull(column.oneOf(EVENT_TYPES)),
  timestamp: column.orNull(column.text),
  data: column.orNull((value: unknown): value is IdentifiedEvent['data'] => column.object(value)),
  trace_context: column.orNull(column.text),
};

type JoinedRow = RowOf<typeof JOINED>;

const LOCK = `
  SELECT pg_try_advisory_xact_lock(hashtext('runhook.relay')) AS taken,
    pg_snapshot_xmin(pg_current_snapshot())::text AS "oldestRunning",
    pg_snapshot_xmax(pg_current_snapshot())::text AS next`;

const LOCKING = { taken: column.flag, oldestRunning: column.digits, next: column.digits };

/**
 * Makes this transaction the one that moves the outbox until it ends, and tells which transactions were running before
 * that; null when another one is at it.
 */
export async function tryRelayLock(transaction: Transaction): Promise<SnapshotEdges | null> {
  const [row] = await queryRows(transaction, LOCKING, LOCK, []);
  return row?.taken ? { oldestRunning: BigInt(row.oldestRunning), next: BigInt(row.next) } : null;
}

/** The oldest entries beyond $1. */
export const READ_OUTBOX = `
  SELECT outbox.sequence, events.id, events.account_id, events.event_type, events."timestamp", events.data,
    events.trace_context
  FROM outbox LEFT JOIN events ON events.day = outbox.day AND events.id = outbox.event_id
  WHERE outbox.sequence > $1
  ORDER BY outbox.sequence LIMIT $2`;

/**
 * The oldest rows beyond `after`. Must be a statement of its own after {@link tryRelayLock}: one that began before the lock was
 * granted may still see rows that the former holder has deleted.
 */
export async function readOutbox(
  transaction: Transaction,
  after: bigint,
  limit: number,
): Promise<OutboxRow[]> {
  const rows = await queryRows(transaction, JOINED, READ_OUTBOX, [after, limit]);
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
  const [row] = await queryRows(database, { count: column.digits }, 'SELECT count(*) FROM outbox', []);
  return Number(row?.count);
}

const COUNTED_MAX = 100_000;

/** What waits beyond $1; a few rows of the index for the age, and a count with a bound. */
const OUTBOX_LAG = `
  SELECT (SELECT count(*)::int FROM (SELECT FROM outbox WHERE sequence > $1 LIMIT ${COUNTED_MAX}) AS counted) AS events,
         (SELECT extract(epoch FROM now() - events.created_at)::float8
          FROM (SELECT day, event_id FROM outbox WHERE sequence > $1 ORDER BY sequence LIMIT 1) AS first
          JOIN events ON events.day = first.day AND events.id = first.event_id) AS "oldestSeconds"`;

/** @param after the relay's bound: up to it there is nothing */
export async function measureOutbox(
  database: Queryable,
  after: bigint,
): Promise<{ events: number; oldestSeconds: number }> {
  const [row] = await queryRows(
    database,
    { events: column.integer, oldestSeconds: column.orNull(column.float) },
    OUTBOX_LAG,
    [after],
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
