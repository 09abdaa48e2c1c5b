import { EVENT_TYPE_TABLE, type EventType, type JobRunEvent, type RunDetails } from '@runhook/contract';
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

/** `events.data` as the driver brings it: the values in their places or, of rows of 0.1.0, an object. */
export type StoredEventData = readonly (string | number)[] | Readonly<Record<string, string | number>>;

export function isStoredEventData(value: unknown): value is StoredEventData {
  if (Array.isArray(value)) return value.length >= TIME_PLACE;
  return column.object(value) && 'jobName' in value;
}

/** The text of `events.data`. The same data always gives the same text. */
export function storedEventData({ eventType, data }: Pick<JobRunEvent, 'eventType' | 'data'>): string {
  const values: RunDetails & Record<string, string | number> = data;
  const stored: (string | number)[] = [];
  for (const field of FIELDS) stored[PLACES[field]] = values[field];
  const { time } = EVENT_TYPE_TABLE[eventType];
  if (time !== null) stored[TIME_PLACE] = values[time] as string;
  return JSON.stringify(stored);
}

/** The data of an event that was stored. */
export function eventDataOf(eventType: string, stored: StoredEventData): JobRunEvent['data'] {
  if (!Array.isArray(stored)) return stored as unknown as JobRunEvent['data'];
  const data: Record<string, string | number> = {};
  for (const field of FIELDS) data[field] = stored[PLACES[field]];
  const { time } = EVENT_TYPE_TABLE[eventType as EventType];
  if (time !== null) data[time] = stored[TIME_PLACE];
  return data as unknown as JobRunEvent['data'];
}

/**
 * SQL for a field of `events.data`, as text.
 * @param data SQL of the column
 */
export function eventDataField(data: string, field: keyof RunDetails): string {
  return `coalesce(${data} ->> ${PLACES[field]}, ${data} ->> '${field}')`;
}
