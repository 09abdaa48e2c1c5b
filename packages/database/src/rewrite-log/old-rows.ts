/*
 * Reads rows of the log in the format of releases before 0.2.0, for `rewriteLog` only. The values of an event were an
 * array without names, with ids and times as numbers; headers of most exchanges were omitted or replaced by a number.
 */
import {
  createEvent,
  EVENT_TYPE_TABLE,
  isEventType,
  type JobRunEvent,
  MASK,
  RUN_FIELDS,
  RUN_STATUS_CODES,
  type RunDetails,
  wellFormedText,
} from '@runhook/contract';

/** The order of the values in `events.data`, which is that of the payload, followed by the time of the event's type. */
const FIELDS = Object.keys(RUN_FIELDS) as (keyof RunDetails)[];

const STATUS_OF_CODE = new Map<number, string>(
  Object.entries(RUN_STATUS_CODES).map(([status, code]) => [code, status]),
);

/** Row of `events`; `data` is JSON text. */
export interface OldEvent {
  id: string;
  accountId: string;
  eventType: string;
  timestamp: string;
  data: string;
}

/** Returns the event with repaired text. Throws if the row is not an event. */
export function parseOldEvent({ id, accountId, eventType, timestamp, data }: OldEvent): JobRunEvent {
  if (!isEventType(eventType)) throw new TypeError(`"${eventType}" is not an event type`);
  const stored: unknown = JSON.parse(data);
  const values = Array.isArray(stored) ? nameValues(stored, eventType) : (stored as Record<string, unknown>);
  const run = Object.fromEntries(FIELDS.map((field) => [field, readField(values, field)]));
  const identity = { eventId: id, accountId: Number(accountId), timestamp: readTimestamp(timestamp) };
  return createEvent(eventType, identity, run as RunDetails, (time) => readText(values, time));
}

function nameValues(
  stored: readonly unknown[],
  eventType: JobRunEvent['eventType'],
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [index, field] of FIELDS.entries())
    values[field] = decodeValue(RUN_FIELDS[field], stored[index]);
  const status = stored[FIELDS.indexOf('runStatus')];
  if (typeof status === 'number') {
    values.runStatus = STATUS_OF_CODE.get(status);
    values.runStatusCode = status;
  }
  const { time } = EVENT_TYPE_TABLE[eventType];
  if (time !== null) values[time] = decodeValue('time', stored[FIELDS.length]);
  return values;
}

function decodeValue(kind: string, value: unknown): unknown {
  if (typeof value !== 'number' || kind === 'code') return value;
  return kind === 'time' ? new Date(value * 1_000).toISOString().replace('.000Z', 'Z') : String(value);
}

function readField(values: Record<string, unknown>, field: keyof RunDetails): string | number {
  if (RUN_FIELDS[field] !== 'code') return readText(values, field);
  const code = values[field];
  if (typeof code !== 'number') throw new TypeError(`${field} is not a number`);
  return code;
}

function readText(values: Record<string, unknown>, field: string): string {
  const text = values[field];
  if (typeof text !== 'string') throw new TypeError(`${field} is not a string`);
  return wellFormedText(text);
}

/** Converts seconds since the epoch with up to nine fractional digits; other text is a timestamp already. */
function readTimestamp(stored: string): string {
  if (!/^\d{1,11}(\.\d{1,9})?$/.test(stored)) return stored;
  const [seconds, fraction = ''] = stored.split('.');
  return new Date(Number(seconds) * 1_000).toISOString().replace(/\d{3}Z$/, `${fraction.padEnd(9, '0')}Z`);
}

/** A row from which the headers of an exchange are derived. */
export interface OldExchange {
  eventId: string;
  startedAt: Date;
  /** JSON text. */
  requestHeaders: string;
  responseHeaders: string | null;
}

/** Returns the headers as JSON text with their names. */
export function restoreHeaders(row: OldExchange): {
  requestHeaders: string;
  responseHeaders: string | null;
} {
  const { requestHeaders, responseHeaders } = row;
  return {
    requestHeaders: JSON.stringify(restoreRequestHeaders(JSON.parse(requestHeaders), row)),
    responseHeaders:
      responseHeaders === null
        ? null
        : JSON.stringify(restoreResponseHeaders(JSON.parse(responseHeaders), row.startedAt.getTime())),
  };
}

/** Restores the usual request headers, of which the log had only the value of `user-agent`. */
function restoreRequestHeaders(stored: unknown, { eventId, startedAt }: OldExchange): unknown {
  if (typeof stored !== 'string') return stored;
  return {
    'content-type': 'application/json',
    'user-agent': stored,
    authorization: MASK,
    'webhook-id': eventId,
    'webhook-timestamp': String(Math.floor(startedAt.getTime() / 1_000)),
    'webhook-signature': MASK,
  };
}

/** Headers by their number. The value applies unless one follows the number. */
const HEADERS_BY_NUMBER: readonly (readonly [name: string, value?: string])[] = [
  ['date'],
  ['connection', 'keep-alive'],
  ['connection', 'close'],
  ['keep-alive', 'timeout=5'],
  ['content-length', '0'],
  ['content-type', 'application/json'],
  ['content-type', 'application/json; charset=utf-8'],
  ['content-type', 'text/plain'],
  ['content-type', 'text/plain; charset=utf-8'],
  ['content-type', 'text/html; charset=utf-8'],
  ['transfer-encoding', 'chunked'],
  ['content-encoding', 'gzip'],
  ['vary', 'Accept-Encoding'],
  ['server', 'nginx'],
  ['server', 'cloudflare'],
  ['x-powered-by', 'Express'],
  ['etag'],
  ['cache-control', 'no-cache'],
  ['cache-control', 'no-store'],
  ['strict-transport-security', 'max-age=31536000; includeSubDomains'],
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'SAMEORIGIN'],
  ['x-xss-protection', '0'],
  ['referrer-policy', 'no-referrer'],
  ['access-control-allow-origin', '*'],
  ['via', '1.1 google'],
  ['alt-svc', 'h3=":443"; ma=86400'],
  ['cf-cache-status', 'DYNAMIC'],
  ['cf-ray'],
  ['x-request-id'],
  ['x-amzn-requestid'],
  ['x-amzn-trace-id'],
  ['apigw-requestid'],
  ['x-runtime'],
  ['x-cache'],
  ['expires'],
  ['pragma', 'no-cache'],
  ['nel'],
  ['report-to'],
  ['location'],
];

/** Precedes, in rows of earlier releases, the name of a header that has no number. */
const HEADER_WITHOUT_NUMBER = -1;
const DATE_NUMBER = 0;

function restoreResponseHeaders(stored: unknown, startedAtMs: number): unknown {
  if (!Array.isArray(stored)) return stored;
  const headers: Record<string, string> = {};
  let index = 0;
  const nextText = () => (typeof stored[index] === 'string' ? (stored[index++] as string) : undefined);
  while (index < stored.length) {
    const number = Number(stored[index++]);
    const [name = '', usual = ''] =
      number === HEADER_WITHOUT_NUMBER ? [nextText()] : (HEADERS_BY_NUMBER[number] ?? []);
    const value = nextText();
    headers[name] = wellFormedText(
      number === DATE_NUMBER ? dateHeader(startedAtMs, Number(value ?? 0)) : (value ?? usual),
    );
  }
  return headers;
}

/** The date of a response was stored as the seconds since the attempt began. */
function dateHeader(startedAtMs: number, seconds: number): string {
  return new Date((Math.floor(startedAtMs / 1_000) + seconds) * 1_000).toUTCString();
}
