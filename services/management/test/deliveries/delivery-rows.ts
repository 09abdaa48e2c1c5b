import { createId, deliveryIdFor, idDay, type JobRunEvent, sampleEvent } from '@runhook/contract';
import { type Database, storedEventData } from '@runhook/database';

const DAY_MS = 86_400_000;

/** Yesterday as `YYYY-MM-DD`: a completed day that has a partition, whenever the tests run. */
export const DAY = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
export const DAY_AFTER = new Date(Date.parse(DAY) + DAY_MS).toISOString().slice(0, 10);

/** Returns a time of {@link DAY}. @param time up to the microsecond, as in ISO 8601 */
export function at(time: string): string {
  return `${DAY}T${time}Z`;
}

/** Returns a time of {@link DAY} as in responses: microseconds since the epoch, as digits. */
export function microsAt(time: string): string {
  const [, seconds = time, fraction = ''] = /^([\d:]+)(?:\.(\d+))?$/.exec(time) ?? [];
  return `${Date.parse(at(seconds)) / 1_000}${fraction.padEnd(6, '0')}`;
}

/** Time in the ids of events of {@link DAY}, whatever the times of their deliveries. */
export const EVENT_TIME = new Date(at('10:00:00'));

export interface DeliveryFields {
  subscriptionId: string;
  accountId: number;
  eventType?: JobRunEvent['eventType'];
  jobName?: string;
  runId?: number;
  /** Time in the event's id, which determines the day. */
  eventTime?: Date;
  createdAt?: string;
  completedAt?: string | null;
  nextAttemptAt?: string | null;
  status?: string;
  reason?: string | null;
  attemptCount?: number;
  httpStatusCode?: number;
  errorCode?: string | null;
  durationMs?: number | null;
  webhookName?: string;
}

export type EventFields = Pick<
  DeliveryFields,
  'accountId' | 'eventType' | 'jobName' | 'runId' | 'eventTime' | 'createdAt'
>;

/** Inserts an event that is dispatched. It is recorded at the creation of its delivery. */
export async function insertEvent(
  { pool }: Database,
  fields: EventFields,
): Promise<{ day: string; event: JobRunEvent }> {
  const { eventTime = new Date(), eventType = 'job.run.completed', runId = 12345 } = fields;
  const eventId = createId('event', eventTime.getTime());
  const sample = sampleEvent('job.run.completed', { accountId: fields.accountId, eventId, now: eventTime });
  const data = { ...sample.data, jobName: fields.jobName ?? 'Nightly', runId: String(runId) };
  const event = { ...sample, eventType, data } as JobRunEvent;
  const day = idDay('event', eventId);
  await pool.query(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [
      ...[day, eventId, fields.accountId, eventType, event.timestamp, storedEventData(event)],
      fields.createdAt ?? eventTime.toISOString(),
    ],
  );
  return { day, event };
}

/** Inserts an event and its delivery into the log as the dispatcher would write them. */
export async function insertDelivery(
  database: Database,
  fields: DeliveryFields,
): Promise<{ id: string; day: string; event: JobRunEvent }> {
  const { day, event } = await insertEvent(database, fields);
  const { eventId, eventType, data } = event;
  const { eventTime = new Date() } = fields;
  const id = deliveryIdFor(eventId, fields.subscriptionId);
  await database.pool.query(
    `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
       status, reason, attempt_count, http_status_code, error_code, duration_ms, created_at, completed_at, next_attempt_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
    [
      day,
      id,
      fields.accountId,
      fields.subscriptionId,
      eventId,
      eventType,
      data.jobId,
      data.runId,
      fields.webhookName ?? 'The name at that time',
      fields.status ?? 'failed',
      fields.reason ?? null,
      fields.attemptCount ?? 6,
      fields.httpStatusCode ?? 500,
      fields.errorCode ?? null,
      fields.durationMs ?? null,
      fields.createdAt ?? eventTime.toISOString(),
      fields.completedAt ?? null,
      fields.nextAttemptAt ?? null,
    ],
  );
  return { id, day, event };
}

export async function insertAttempt(
  { pool }: Database,
  attempt: { day: string; deliveryId: string; number: number; columns?: Record<string, unknown> },
): Promise<void> {
  const row = {
    day: attempt.day,
    delivery_id: attempt.deliveryId,
    number: attempt.number,
    trigger: 'automatic',
    started_at: '2026-11-20T10:00:00.123456Z',
    duration_ms: 12,
    http_status_code: 200,
    error_code: null,
    error_message: null,
    request_headers: { authorization: '***' },
    response_headers: { 'content-type': 'text/plain' },
    response_body: 'ok',
    response_truncated: false,
    ...attempt.columns,
  };
  const columns = Object.keys(row);
  await pool.query(
    `INSERT INTO attempts (account_id, ${columns.join(', ')})
     SELECT account_id, ${columns.map((_, index) => `$${index + 1}`).join(', ')} FROM deliveries WHERE day = $1 AND id = $2`,
    Object.values(row),
  );
}
