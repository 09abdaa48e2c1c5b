// SQL by hand: finds rows of the log by day and id in their partition, with times to the microsecond.
import { deliveryIdFor, EVENT_TYPES, type EventType, idDay, wellFormedText } from '@runhook/contract';
import {
  column,
  distinctDays,
  inDays,
  isStoredEventData,
  type Pool,
  type Queryable,
  queryRows,
  type RowOf,
  type StoredEventData,
} from '@runhook/database';
import { BLOCKED_MESSAGE, isBlocked, publicErrorCode } from '@runhook/egress';

/** Returns SQL for a timestamptz as the API returns it: microseconds since the epoch, as digits; null remains null. */
export function microsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000000)::bigint::text`;
}

/** Returns SQL that converts microseconds since the epoch, as digits, to a timestamptz without rounding. */
export function timestampOf(parameter: string): string {
  return `(timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond')`;
}

/** Identifies the log of a subscription. The account determines the partition within each day. */
export interface LogKey {
  accountId: number;
  subscriptionId: string;
}

/** Identifies a delivery of a subscription whose account was checked before. */
export interface DeliveryKey extends LogKey {
  id: string;
}

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Returns SQL for a status of `deliveries d`, as a literal: a generic plan uses no partial index for a parameter. */
export function statusCondition(status: DeliveryStatus): string {
  return `d.status = '${status}'`;
}

/** A row of a delivery; times are microseconds since the epoch, as digits. */
export const DELIVERY = {
  id: column.text,
  subscription_id: column.text,
  event_id: column.text,
  event_type: column.text,
  job_id: column.digits,
  run_id: column.digits,
  status: column.oneOf(DELIVERY_STATUSES),
  reason: column.orNull(column.text),
  attempt_count: column.integer,
  http_status_code: column.integer,
  error_code: column.orNull(column.text),
  created_at: column.digits,
  completed_at: column.orNull(column.digits),
  next_attempt_at: column.orNull(column.digits),
  duration_ms: column.orNull(column.integer),
  /** Event whose delivery it waits for, and its type; null unless it waits for one. */
  waits_for_event_id: column.orNull(column.text),
  waits_for_event_type: column.orNull(column.oneOf(EVENT_TYPES)),
  out_of_order: column.orNull(column.flag),
};

/** `event_data` is null if the event is deleted: retention deletes it shortly before or after the delivery. */
const DELIVERY_WITH_DATA = { ...DELIVERY, event_data: column.orNull(isStoredEventData) };

const DELIVERY_WITH_EVENT = {
  ...DELIVERY_WITH_DATA,
  webhook_name: column.text,
  account_id: column.digits,
  event_timestamp: column.orNull(column.text),
};

export type DeliveryRow = RowOf<typeof DELIVERY> & { event_data: StoredEventData | null };

/** SQL: a delivery `d` waits for an earlier one of its run. */
const IS_WAITING = `d.deferred_at = 'infinity'`;

/** Columns of `DeliveryRow` from `deliveries d`, without the event's data. */
export const DELIVERY_COLUMNS = `
  d.id, d.subscription_id, d.event_id, d.event_type, d.job_id::text AS job_id, d.run_id::text AS run_id, d.status,
  d.reason, d.attempt_count, d.http_status_code, d.error_code, ${microsOf('d.created_at')} AS created_at,
  ${microsOf('d.completed_at')} AS completed_at, ${microsOf('d.next_attempt_at')} AS next_attempt_at, d.duration_ms,
  CASE WHEN ${IS_WAITING} THEN d.waits_for_event_id END AS waits_for_event_id,
  CASE WHEN ${IS_WAITING} THEN d.waits_for_event_type END AS waits_for_event_type, d.out_of_order`;

/** Identifies a row of the log. */
export const ROW_KEY = { day: column.text, id: column.text };
export type RowKey = RowOf<typeof ROW_KEY>;

const LOG_ROW = { ...DELIVERY_WITH_DATA, webhook_name: column.text, day: column.text };
export type LogRow = RowOf<typeof LOG_ROW>;

const SELECT_BY_KEYS = `
  SELECT ${DELIVERY_COLUMNS}, d.webhook_name, d.day::text AS day,
    (SELECT e.data FROM events e
     WHERE e.day = d.day AND e.id = d.event_id AND e.account_id = $3 AND ${inDays('$4', 'e')}) AS event_data
  FROM unnest($1::date[], $2::text[]) AS k (day, id)
  JOIN deliveries d ON d.day = k.day AND d.id = k.id AND d.account_id = $3
  WHERE ${inDays('$4', 'k', 'd')}`;

/**
 * Reads deliveries of an account by their keys, with the data of their events, in the order of the keys; deleted ones
 * are omitted. This is a separate statement, so that planning opens the days of these rows only.
 */
export async function findRowsByKeys(
  database: Queryable,
  accountId: number,
  keys: readonly RowKey[],
): Promise<LogRow[]> {
  if (keys.length === 0) return [];
  const days = keys.map(({ day }) => day);
  const values = [days, keys.map(({ id }) => id), accountId, distinctDays(days)];
  const rows = await queryRows(database, LOG_ROW, SELECT_BY_KEYS, values);
  const rowsById = new Map(rows.map((row) => [row.id, row]));
  return keys.flatMap(({ id }) => rowsById.get(id) ?? []);
}

/** A delivery with the data that its body is rendered from. */
export type DeliveryWithEvent = RowOf<typeof DELIVERY_WITH_EVENT>;

const SELECT_ONE = `
  SELECT ${DELIVERY_COLUMNS}, d.webhook_name, d.account_id::text AS account_id,
    e."timestamp" AS event_timestamp, e.data AS event_data
  FROM deliveries d LEFT JOIN events e ON e.day = $1 AND e.id = d.event_id AND e.account_id = $4
  WHERE d.day = $1 AND d.id = $2 AND d.account_id = $4 AND d.subscription_id = $3`;

export async function findDelivery(
  pool: Pool,
  { id, accountId, subscriptionId }: DeliveryKey,
): Promise<DeliveryWithEvent | null> {
  const values = [idDay('delivery', id), id, subscriptionId, accountId];
  return (await queryRows(pool, DELIVERY_WITH_EVENT, SELECT_ONE, values))[0] ?? null;
}

const SELECT_ATTEMPTS = `
  SELECT number, trigger, ${microsOf('started_at')} AS started_at, duration_ms, http_status_code, error_code,
    error_message, request_headers, response_headers, response_body, response_truncated,
    dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, format
  FROM logged_attempts
  WHERE day = $1 AND delivery_id = $2 AND account_id = $3
  ORDER BY number`;

/** Returns all attempts of a delivery in order. */
export async function listAttempts(
  pool: Pool,
  { id, accountId }: Omit<DeliveryKey, 'subscriptionId'>,
): Promise<AttemptRow[]> {
  return await queryRows(pool, ATTEMPT, SELECT_ATTEMPTS, [idDay('delivery', id), id, accountId]);
}

/**
 * Reason for which a delivery waits: an earlier delivery of its run, which is on record once its event is dispatched, or the rate
 * limit of its webhook.
 */
export type WaitingFor =
  | { kind: 'order'; event_type: EventType; delivery_id: string }
  | { kind: 'rate_limit' };

/** A delivery as the API returns it (docs/contract.md#deliveries). */
export interface DeliveryView
  extends Omit<
    DeliveryRow,
    'http_status_code' | 'event_data' | 'waits_for_event_id' | 'waits_for_event_type' | 'out_of_order'
  > {
  job_name: string;
  http_status_code: string;
  /** Absent unless it waits. */
  waiting_for?: WaitingFor;
  /** Absent unless a later event of its run was sent before. */
  out_of_order?: true;
}

/**
 * Returns the view for users, who must not learn by which rule a request was blocked, or how long the lookup of its name
 * took (docs/contract.md#egress).
 */
export function deliveryView(row: DeliveryRow): DeliveryView {
  const view = operatorDeliveryView(row);
  return {
    ...view,
    reason: view.reason?.replace(BLOCKED_IN_0_1, BLOCKED_MESSAGE) ?? null,
    error_code: view.error_code && publicErrorCode(view.error_code),
    duration_ms: mayBeBlocked(row) ? null : view.duration_ms,
  };
}

/** Sentences of release 0.1.0 that name the rule. */
const BLOCKED_IN_0_1 = /The host name could not be resolved\.|The address \S+ is not allowed\./;

/** Release 0.1.0 stored no error code in deliveries, and the status 502 for requests without a response. */
function mayBeBlocked({ error_code: code, http_status_code: status }: DeliveryRow): boolean {
  return code === null ? status === 502 : isBlocked(code);
}

/** Returns the view with the rule that blocked the request, for operators only. */
export function operatorDeliveryView(row: DeliveryRow): DeliveryView {
  return {
    id: row.id,
    subscription_id: row.subscription_id,
    event_id: row.event_id,
    event_type: row.event_type,
    job_id: row.job_id,
    job_name: row.event_data === null ? '' : wellFormedText(row.event_data.jobName),
    run_id: row.run_id,
    status: row.status,
    reason: row.reason,
    attempt_count: row.attempt_count,
    http_status_code: String(row.http_status_code),
    error_code: row.error_code,
    created_at: row.created_at,
    completed_at: row.completed_at,
    next_attempt_at: row.next_attempt_at,
    duration_ms: row.duration_ms,
    ...waitingFor(row),
    ...(row.out_of_order ? { out_of_order: true as const } : {}),
  };
}

function waitingFor({
  subscription_id,
  waits_for_event_id: eventId,
  waits_for_event_type: event_type,
}: DeliveryRow): Pick<DeliveryView, 'waiting_for'> {
  if (eventId === null || event_type === null) return {};
  const delivery_id = deliveryIdFor(eventId, subscription_id);
  return { waiting_for: { kind: 'order', event_type, delivery_id } };
}

/** A row of an attempt. Signatures were masked before they were stored. */
const ATTEMPT = {
  number: column.integer,
  trigger: column.oneOf(['automatic', 'manual'] as const),
  started_at: column.digits,
  duration_ms: column.integer,
  http_status_code: column.integer,
  error_code: column.orNull(column.text),
  error_message: column.orNull(column.text),
  request_headers: column.textsByName,
  response_headers: column.orNull(column.textsByName),
  response_body: column.orNull(column.text),
  response_truncated: column.flag,
  dns_ms: column.orNull(column.integer),
  connect_ms: column.orNull(column.integer),
  tls_ms: column.orNull(column.integer),
  first_byte_ms: column.orNull(column.integer),
  /** Null if no request was sent. */
  total_ms: column.orNull(column.integer),
  format: column.orNull(column.text),
};

export type AttemptRow = RowOf<typeof ATTEMPT>;

/** Durations of the phases of an attempt in milliseconds; null for a phase that did not take place. */
export interface TimingsView {
  dns_ms: number | null;
  connect_ms: number | null;
  tls_ms: number | null;
  first_byte_ms: number | null;
  total_ms: number;
}

/** An attempt as the API returns it (docs/contract.md#attempts). */
export interface AttemptView
  extends Omit<
    AttemptRow,
    'duration_ms' | 'http_status_code' | 'error_code' | 'error_message' | 'format' | keyof TimingsView
  > {
  /** Null if no request was sent for want of an address. */
  duration_ms: number | null;
  http_status_code: string;
  error: { code: string; message: string } | null;
  timings: TimingsView | null;
  /** Format of the body; absent for the payload of the contract. */
  format?: string;
}

/** Returns the view for users, as {@link deliveryView}. */
export function attemptView(row: AttemptRow): AttemptView {
  const view = operatorAttemptView(row);
  if (view.error === null || !isBlocked(view.error.code)) return view;
  const error = { code: publicErrorCode(view.error.code), message: BLOCKED_MESSAGE };
  return { ...view, error, duration_ms: null, timings: null };
}

/** Returns the view with the rule that blocked the request, for operators only. */
export function operatorAttemptView(row: AttemptRow): AttemptView {
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
    ...(row.format !== null && { format: row.format }),
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
