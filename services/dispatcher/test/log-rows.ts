import { idDay, type JobRunEvent, type KeptHeaders } from '@runhook/contract';
import { type Database, storedEventData } from '@runhook/database';

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
  request_headers: KeptHeaders;
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

/** As management commits it: nobody has fanned it out. */
export async function insertOpenEvent({ pool }: Database, event: JobRunEvent): Promise<void> {
  const { eventId, accountId, eventType, timestamp } = event;
  await pool.query(
    `WITH event AS (
       INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
       VALUES ($1, $2, $3, $4, $5, $6) RETURNING day, id, account_id)
     INSERT INTO open_events (day, event_id, account_id) SELECT day, id, account_id FROM event`,
    [idDay('event', eventId), eventId, accountId, eventType, timestamp, storedEventData(event)],
  );
}
