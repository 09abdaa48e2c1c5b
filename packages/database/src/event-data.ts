import {
  EVENT_TYPE_TABLE,
  type EventType,
  idDay,
  type JobRunEvent,
  RUN_FIELDS,
  RUN_STATUS_CODES,
  type RunDetails,
  type RunStatus,
} from '@runhook/contract';
import type { Given } from './given.ts';
import { column } from './rows.ts';

/**
 * Where a stored event has each value: names that are the same in every row would be two fifths of what it takes. Rows last
 * as long as the log, so no release may move one; a new one comes behind, and rows before it end sooner.
 */
const PLACES = {
  jobId: 0,
  jobName: 1,
  runId: 2,
  environmentId: 3,
  environmentName: 4,
  engineVersion: 5,
  projectName: 6,
  projectId: 7,
  runStatus: 8,
  runStatusCode: 9,
  runStatusMessage: 10,
  runReason: 11,
  runStartedAt: 12,
} as const satisfies Record<keyof RunDetails, number>;

/** Of the time that the event's type carries beside `runStartedAt`, if it carries one. Every row has what stands before it. */
const TIME_PLACE = 13;

const FIELDS = Object.keys(PLACES) as (keyof RunDetails)[];

/**
 * `events.data` as the driver brings it: the values in their places or, of rows of 0.1.0, an object. A number in the place of a
 * text is a shorter form of it.
 */
export type StoredEventData = readonly (string | number)[] | Readonly<Record<string, string | number>>;

export function isStoredEventData(value: unknown): value is StoredEventData {
  if (Array.isArray(value)) return value.length >= TIME_PLACE;
  return column.object(value) && 'jobName' in value;
}

/** The text of `events.data`. The same data always gives the same text. */
export function storedEventData({ eventType, data }: Pick<JobRunEvent, 'eventType' | 'data'>): string {
  const values: RunDetails & Record<string, string | number> = data;
  const stored: (string | number)[] = [];
  for (const field of FIELDS) stored[PLACES[field]] = shortened(RUN_FIELDS[field], values[field]);
  const code = RUN_STATUS_CODES[data.runStatus as RunStatus];
  if (code !== undefined && code === data.runStatusCode) {
    stored[PLACES.runStatus] = code;
    stored[PLACES.runStatusCode] = 0;
  }
  const { time } = EVENT_TYPE_TABLE[eventType];
  if (time !== null) stored[TIME_PLACE] = shortened('time', values[time] as string);
  return JSON.stringify(stored);
}

/** The data of an event that was stored. */
export function eventDataOf(eventType: string, stored: StoredEventData): JobRunEvent['data'] {
  if (!Array.isArray(stored)) return stored as unknown as JobRunEvent['data'];
  const data: Record<string, string | number> = {};
  for (const field of FIELDS) data[field] = told(RUN_FIELDS[field], stored[PLACES[field]]);
  const status = stored[PLACES.runStatus];
  if (typeof status === 'number') {
    data.runStatus = STATUS_OF_CODE.get(status) ?? '';
    data.runStatusCode = status;
  }
  const { time } = EVENT_TYPE_TABLE[eventType as EventType];
  if (time !== null) data[time] = told('time', stored[TIME_PLACE]);
  return data as unknown as JobRunEvent['data'];
}

const STATUS_OF_CODE = new Map<number, string>(
  Object.entries(RUN_STATUS_CODES).map(([status, code]) => [code, status]),
);

type FieldKind = (typeof RUN_FIELDS)[keyof RunDetails];

/** An id and a time as a number, where {@link told} makes the very same text of it. */
function shortened(kind: FieldKind, value: string | number): string | number {
  if (kind !== 'id' && kind !== 'time') return value;
  const number = kind === 'id' ? Number(value) : Date.parse(String(value)) / 1_000;
  return Number.isSafeInteger(number) && told(kind, number) === value ? number : value;
}

function told(kind: FieldKind, value: string | number): string | number {
  if (typeof value !== 'number') return value;
  if (kind === 'id') return String(value);
  return kind === 'time' ? new Date(value * 1_000).toISOString().replace('.000Z', 'Z') : value;
}

/**
 * The text of `events.timestamp`: seconds since the epoch, with as many digits of the fraction as it has, where
 * {@link eventTimestampOf} makes the same nanoseconds of it.
 */
export function storedTimestamp(timestamp: string): string {
  const [, fraction = ''] = /\.(\d{9})Z$/.exec(timestamp) ?? [];
  const digits = fraction.replace(/0+$/, '');
  const stored = `${Math.floor(Date.parse(timestamp) / 1_000)}${digits === '' ? '' : `.${digits}`}`;
  return isSeconds(stored) && eventTimestampOf(stored) === timestamp ? stored : timestamp;
}

/** The timestamp of an event that was stored; of rows of 0.1.0 it is as it was. */
export function eventTimestampOf(stored: string): string {
  if (!isSeconds(stored)) return stored;
  const [seconds, fraction = ''] = stored.split('.');
  return new Date(Number(seconds) * 1_000).toISOString().replace(/\d{3}Z$/, `${fraction.padEnd(9, '0')}Z`);
}

function isSeconds(text: string): boolean {
  return /^\d{1,11}(\.\d{1,9})?$/.test(text);
}

/** The columns of `events`. */
export const GIVEN_EVENT = {
  day: ['date', ({ event }) => idDay('event', event.eventId)],
  id: ['text', ({ event }) => event.eventId],
  account_id: ['bigint', ({ event }) => event.accountId],
  event_type: ['text', ({ event }) => event.eventType],
  timestamp: ['text', ({ event }) => storedTimestamp(event.timestamp)],
  data: ['json', ({ event }) => storedEventData(event)],
} as const satisfies Given<{ event: JobRunEvent }>;

/**
 * SQL for what the index of `open_events` has of an event's id: seven digits of its KSUID, in the order of time.
 * @param eventId SQL
 */
export function digitsOf(eventId: string): string {
  return `substr(${eventId}, 5, 7)`;
}

/**
 * SQL: whether `open_events` has all events that are open. A crash of PostgreSQL empties it, and the table of this row with it
 * (docs/adr/0057-open-events-are-found-again.md).
 */
export const OPEN_EVENTS_ARE_WHOLE = 'EXISTS (SELECT FROM open_events_whole w WHERE w.id)';

/**
 * SQL for a field of `events.data`, as text.
 * @param data SQL of the column
 */
export function eventDataField(data: string, field: keyof RunDetails): string {
  return `coalesce(${data} ->> ${PLACES[field]}, ${data} ->> '${field}')`;
}
