import { idDay } from '@runhook/contract';
import { type Database, runStatement } from '@runhook/database';
import { microsOf } from '../http/sql-text.ts';
import { DELIVERY_COLUMNS } from './log-statements.ts';

type Pool = Database['pool'];

/** Names a delivery of a subscription; whose subscription it is was asked before. */
export interface DeliveryKey {
  subscriptionId: string;
  id: string;
}

/** A delivery with what its body is rendered from. */
export interface DeliveryWithEvent extends Omit<DeliveryRow, 'event_data'> {
  webhook_name: string;
  account_id: string;
  event_timestamp: string | null;
  event_data: (Record<string, unknown> & { jobName: string }) | null;
}

const SELECT_ONE = `
  SELECT ${DELIVERY_COLUMNS}, d.webhook_name, d.account_id::text AS account_id, e."timestamp" AS event_timestamp,
    e.data AS event_data
  FROM deliveries d
  LEFT JOIN events e ON e.day = d.day AND e.id = d.event_id
  WHERE d.day = $1 AND d.id = $2 AND d.subscription_id = $3`;

export async function findDelivery(
  pool: Pool,
  { id, subscriptionId }: DeliveryKey,
): Promise<DeliveryWithEvent | null> {
  const values = [idDay('delivery', id), id, subscriptionId];
  return (await runStatement<DeliveryWithEvent>(pool, SELECT_ONE, values))[0] ?? null;
}

const SELECT_ATTEMPTS = `
  SELECT number, trigger, ${microsOf('started_at')} AS started_at, duration_ms, http_status_code, error_code,
    error_message, request_headers, response_headers, response_body, response_truncated,
    dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms
  FROM attempts
  WHERE day = $1 AND delivery_id = $2
  ORDER BY number`;

/** Every attempt of a delivery, in the order they were made. */
export async function listAttempts(pool: Pool, deliveryId: string): Promise<AttemptRow[]> {
  return await runStatement<AttemptRow>(pool, SELECT_ATTEMPTS, [idDay('delivery', deliveryId), deliveryId]);
}

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A delivery as the database has it, with its event's data; times are microseconds since the epoch, as digits. */
export interface DeliveryRow {
  id: string;
  subscription_id: string;
  event_id: string;
  event_type: string;
  job_id: string;
  run_id: string;
  status: DeliveryStatus;
  reason: string | null;
  attempt_count: number;
  http_status_code: number;
  created_at: string;
  completed_at: string | null;
  next_attempt_at: string | null;
  duration_ms: number | null;
  /** Null when the event is gone, which its retention does a moment before or after the delivery's. */
  event_data: { jobName: string } | null;
}

/** A delivery as the log answers it (docs/contract.md#deliveries). */
export interface DeliveryView extends Omit<DeliveryRow, 'http_status_code' | 'event_data'> {
  job_name: string;
  http_status_code: string;
}

export function deliveryView(row: DeliveryRow): DeliveryView {
  return {
    id: row.id,
    subscription_id: row.subscription_id,
    event_id: row.event_id,
    event_type: row.event_type,
    job_id: row.job_id,
    job_name: row.event_data?.jobName ?? '',
    run_id: row.run_id,
    status: row.status,
    reason: row.reason,
    attempt_count: row.attempt_count,
    http_status_code: String(row.http_status_code),
    created_at: row.created_at,
    completed_at: row.completed_at,
    next_attempt_at: row.next_attempt_at,
    duration_ms: row.duration_ms,
  };
}

/** One attempt as the database has it. Signature values were masked before they were stored. */
export interface AttemptRow {
  number: number;
  trigger: 'automatic' | 'manual';
  started_at: string;
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
  /** Null when nothing was sent. */
  total_ms: number | null;
}

/** How long the phases of an attempt took, in milliseconds; null where one did not take place. */
export interface TimingsView {
  dns_ms: number | null;
  connect_ms: number | null;
  tls_ms: number | null;
  first_byte_ms: number | null;
  total_ms: number;
}

/** One attempt as the log answers it (docs/contract.md#attempts). */
export interface AttemptView
  extends Omit<AttemptRow, 'http_status_code' | 'error_code' | 'error_message' | keyof TimingsView> {
  http_status_code: string;
  error: { code: string; message: string } | null;
  timings: TimingsView | null;
}

export function attemptView(row: AttemptRow): AttemptView {
  return {
    number: row.number,
    trigger: row.trigger,
    started_at: row.started_at,
    duration_ms: row.duration_ms,
    http_status_code: String(row.http_status_code),
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
    request_headers: row.request_headers,
    response_headers: row.response_headers,
    response_body: row.response_body,
    response_truncated: row.response_truncated,
    timings: timingsView(row),
  };
}

function timingsView({
  dns_ms,
  connect_ms,
  tls_ms,
  first_byte_ms,
  total_ms,
}: AttemptRow): TimingsView | null {
  return total_ms === null ? null : { dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms };
}
