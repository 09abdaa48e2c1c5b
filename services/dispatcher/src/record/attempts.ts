import { distinctDays, inDays, type Pool, runStatement, type UnnestColumns } from '@runhook/database';
import type { EgressTimings } from '@runhook/egress';

/** An attempt for the log, and the state that it gives its delivery. */
export interface AttemptRecord {
  deliveryId: string;
  accountId: number;
  /** The day partition, `YYYY-MM-DD`. */
  day: string;
  number: number;
  trigger: 'automatic' | 'manual';
  startedAt: Date;
  durationMs: number;
  httpStatusCode: number;
  /** `detail` is only for the service's own log. */
  error: { code: string; message: string; detail?: string } | null;
  /** Headers with masked values. */
  requestHeaders: Record<string, string>;
  response: { headers: Record<string, string>; body: string; truncated: boolean } | null;
  /** Name of the format of the body; absent for the payload of the contract. */
  format?: string;
  /** Null when nothing was sent. */
  timings: EgressTimings | null;
  status: 'pending' | 'delivered' | 'failed';
  reason: string | null;
  /** Milliseconds until the next attempt; null when the delivery is complete. */
  nextDelayMs: number | null;
}

/** An attempt that is already in the log, separately or with its delivery, changes nothing: its job was repeated. */
const RECORD_ATTEMPTS = `
  WITH input AS (
    SELECT *, now() + next_delay_ms * interval '1 millisecond' AS next_attempt_at,
           CASE WHEN next_delay_ms IS NULL THEN now() END AS completed_at
    FROM unnest(
      $1::date[], $2::text[], $3::int[], $4::text[], $5::timestamptz[], $6::int[], $7::int[], $8::text[], $9::text[],
      $10::json[], $11::json[], $12::text[], $13::boolean[], $14::text[], $15::text[], $16::bigint[],
      $17::int[], $18::int[], $19::int[], $20::int[], $21::int[], $22::bigint[], $23::text[])
      AS i (day, delivery_id, number, trigger, started_at, duration_ms, http_status_code, error_code, error_message,
            request_headers, response_headers, response_body, response_truncated, status, reason, next_delay_ms,
            dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, account_id, format)
    WHERE ${inDays('$24', 'i')}
  ), updated AS (
    UPDATE deliveries d
    SET status = i.status, reason = i.reason, attempt_count = i.number, http_status_code = i.http_status_code,
        error_code = i.error_code, duration_ms = i.duration_ms,
        completed_at = i.completed_at, next_attempt_at = i.next_attempt_at, deferred_at = NULL
    FROM input i
    WHERE d.day = i.day AND d.id = i.delivery_id AND d.account_id = i.account_id AND d.attempt_count < i.number
      AND ${inDays('$24', 'd')}
    RETURNING i.*
  )
  INSERT INTO attempts (day, delivery_id, number, trigger, started_at, duration_ms, http_status_code, error_code,
                        error_message, request_headers, response_headers, response_body, response_truncated,
                        dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, account_id, format)
  SELECT day, delivery_id, number, trigger, started_at, duration_ms, http_status_code, error_code,
         error_message, request_headers, response_headers, response_body, response_truncated,
         dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, account_id, format
  FROM updated
  ON CONFLICT (day, delivery_id, number, account_id) DO NOTHING`;

export async function recordAttempts(pool: Pool, records: readonly AttemptRecord[]): Promise<void> {
  const column = <T>(read: (record: AttemptRecord) => T): T[] => records.map(read);
  const days = column(({ day }) => day);
  await runStatement(
    pool,
    RECORD_ATTEMPTS,
    [
      days,
      column(({ deliveryId }) => deliveryId),
      column(({ number }) => number),
      column(({ trigger }) => trigger),
      column(({ startedAt }) => startedAt.toISOString()),
      column(({ durationMs }) => durationMs),
      column(({ httpStatusCode }) => httpStatusCode),
      column(({ error }) => error?.code ?? null),
      column(({ error }) => error?.message ?? null),
      column(({ requestHeaders }) => JSON.stringify(requestHeaders)),
      column(({ response }) => (response ? JSON.stringify(response.headers) : null)),
      column(({ response }) => response?.body ?? null),
      column(({ response }) => response?.truncated ?? false),
      column(({ status }) => status),
      column(({ reason }) => reason),
      column(({ nextDelayMs }) => nextDelayMs),
      column(({ timings }) => timings?.dnsMs ?? null),
      column(({ timings }) => timings?.connectMs ?? null),
      column(({ timings }) => timings?.tlsMs ?? null),
      column(({ timings }) => timings?.firstByteMs ?? null),
      column(({ timings }) => timings?.totalMs ?? null),
      column(({ accountId }) => accountId),
      column(({ format }) => format ?? null),
      distinctDays(days),
    ],
    'record-attempts',
  );
}

/** Columns of a delivery's only attempt if it succeeded, which are in the delivery's row; otherwise 0 or null. */
export const DELIVERED_COLUMNS = {
  attempt_count: ['int', ({ delivered }) => (delivered ? 1 : 0)],
  http_status_code: ['int', ({ delivered }) => delivered?.httpStatusCode ?? 0],
  duration_ms: ['int', ({ delivered }) => delivered?.durationMs],
  started_at: ['timestamptz', ({ delivered }) => delivered?.startedAt.toISOString()],
  request_headers: ['json', ({ delivered }) => delivered && JSON.stringify(delivered.requestHeaders)],
  response_headers: [
    'json',
    ({ delivered }) => delivered?.response && JSON.stringify(delivered.response.headers),
  ],
  response_body: ['text', ({ delivered }) => delivered?.response?.body],
  // Null stands for false, which saves a byte and the alignment of the next column.
  response_truncated: ['boolean', ({ delivered }) => delivered?.response?.truncated || null],
  dns_ms: ['int', ({ delivered }) => delivered?.timings?.dnsMs],
  connect_ms: ['int', ({ delivered }) => delivered?.timings?.connectMs],
  tls_ms: ['int', ({ delivered }) => delivered?.timings?.tlsMs],
  first_byte_ms: ['int', ({ delivered }) => delivered?.timings?.firstByteMs],
  total_ms: ['int', ({ delivered }) => delivered?.timings?.totalMs],
  format: ['text', ({ delivered }) => delivered?.format],
} as const satisfies UnnestColumns<{ delivered?: AttemptRecord | undefined }>;

/** State of a subscription that one or several consecutive attempts report. */
export interface SubscriptionStatus {
  subscriptionId: string;
  /** Start of the latest attempt. */
  dispatchedAt: Date;
  httpStatusCode: number;
  /** Error of the latest attempt; null when it succeeded. */
  errorCode: string | null;
  /** Start of the latest successful attempt; null when none succeeded. */
  succeededAt: Date | null;
  /** Number of these attempts that failed after the last success among them. */
  failures: number;
  /** Start of the first of these failures. */
  failedSince: Date | null;
}

/** @param earlier status that was reported before `later`; a success in `later` ends its failures */
export function mergeStatuses(earlier: SubscriptionStatus, later: SubscriptionStatus): SubscriptionStatus {
  const latest = earlier.dispatchedAt > later.dispatchedAt ? earlier : later;
  const isStillFailing = later.succeededAt === null;
  return {
    ...latest,
    succeededAt: later.succeededAt ?? earlier.succeededAt,
    failures: later.failures + (isStillFailing ? earlier.failures : 0),
    failedSince: (isStillFailing ? earlier.failedSince : null) ?? later.failedSince,
  };
}

/** Keeps time, code and error of a newer attempt, as of another dispatcher. `updated_at` is for changes by users. */
const UPDATE_STATUSES = `
  UPDATE subscriptions s
  SET dispatched_at = greatest(s.dispatched_at, i.dispatched_at),
      http_status_code = CASE
        WHEN s.dispatched_at > i.dispatched_at THEN s.http_status_code ELSE i.http_status_code
      END,
      error_code = CASE WHEN s.dispatched_at > i.dispatched_at THEN s.error_code ELSE i.error_code END,
      last_success_at = greatest(s.last_success_at, i.succeeded_at),
      consecutive_failures = CASE WHEN i.succeeded_at IS NULL THEN s.consecutive_failures ELSE 0 END + i.failures,
      failing_since = CASE
        WHEN i.succeeded_at IS NULL THEN coalesce(s.failing_since, i.failed_since) ELSE i.failed_since
      END
  FROM unnest($1::text[], $2::timestamptz[], $3::int[], $4::timestamptz[], $5::int[], $6::timestamptz[],
              $7::text[])
    AS i (id, dispatched_at, http_status_code, succeeded_at, failures, failed_since, error_code)
  WHERE s.id = i.id`;

export async function updateSubscriptionStatuses(
  pool: Pool,
  statuses: readonly SubscriptionStatus[],
): Promise<void> {
  // Sorted, so that two dispatchers that update the same rows cannot deadlock.
  const sorted = [...statuses].sort((a, b) => (a.subscriptionId < b.subscriptionId ? -1 : 1));
  await runStatement(
    pool,
    UPDATE_STATUSES,
    [
      sorted.map(({ subscriptionId }) => subscriptionId),
      sorted.map(({ dispatchedAt }) => dispatchedAt.toISOString()),
      sorted.map(({ httpStatusCode }) => httpStatusCode),
      sorted.map(({ succeededAt }) => succeededAt?.toISOString() ?? null),
      sorted.map(({ failures }) => failures),
      sorted.map(({ failedSince }) => failedSince?.toISOString() ?? null),
      sorted.map(({ errorCode }) => errorCode),
    ],
    'update-subscription-statuses',
  );
}
