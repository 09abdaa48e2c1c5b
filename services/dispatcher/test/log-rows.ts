import { idDay, type JobRunEvent } from '@runhook/contract';
import { type Database, type Pool, storedEventData } from '@runhook/database';
import { type CommitResult, commitEvents, type EventCommit } from '../src/record/commit-events.ts';

export interface DeliveryRow {
  id: string;
  status: string;
  reason: string | null;
  event_id: string;
  event_type: string;
  webhook_name: string;
  attempt_count: number;
  http_status_code: number;
  error_code: string | null;
  duration_ms: number | null;
  next_attempt_at: Date | null;
}

export async function deliveriesOf({ pool }: Database): Promise<DeliveryRow[]> {
  return (await pool.query<DeliveryRow>('SELECT * FROM deliveries ORDER BY created_at, id')).rows;
}

export interface AttemptRow {
  number: number;
  trigger: string;
  started_at: Date;
  duration_ms: number;
  http_status_code: number;
  error_code: string | null;
  error_message: string | null;
  request_headers: Record<string, string>;
  response_headers: Record<string, string> | null;
  response_body: string | null;
  response_truncated: boolean;
  dns_ms: number | null;
  connect_ms: number | null;
  tls_ms: number | null;
  first_byte_ms: number | null;
  total_ms: number | null;
}

export async function attemptsOf({ pool }: Database, deliveryId: string): Promise<AttemptRow[]> {
  const { rows } = await pool.query<AttemptRow>(
    'SELECT * FROM logged_attempts WHERE delivery_id = $1 ORDER BY number',
    [deliveryId],
  );
  return rows;
}

/** Inserts an event as management commits it, undispatched. */
export async function insertUndispatched({ pool }: Database, event: JobRunEvent): Promise<void> {
  const { eventId, accountId, eventType, timestamp, data } = event;
  await pool.query(
    `WITH event AS (
       INSERT INTO events (day, id, account_id, event_type, "timestamp", data, run_id)
       VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING day, id, account_id)
     INSERT INTO undispatched_events (day, event_id, account_id) SELECT day, id, account_id FROM event`,
    [idDay('event', eventId), eventId, accountId, eventType, timestamp, storedEventData(event), data.runId],
  );
}

/** Commits events as dispatchers do. Returns the result of each event, in input order. */
export async function commitResults(pool: Pool, commits: readonly EventCommit[]): Promise<CommitResult[]> {
  return (await commitEvents(pool, commits)).map(({ result }) => result);
}
