import { hash } from 'node:crypto';
import { idDay, type JobRunEvent, orderedData } from '@runhook/contract';
import { column } from './rows.ts';
import type { UnnestColumns } from './unnest.ts';

/** Type of `events.data`, as the driver returns it. */
export type StoredEventData = JobRunEvent['data'];

export function isStoredEventData(value: unknown): value is StoredEventData {
  return column.object(value) && 'jobName' in value;
}

/** Returns the text of `events.data`. Equal data always gives the same text. */
export function storedEventData(event: Pick<JobRunEvent, 'eventType' | 'data'>): string {
  return JSON.stringify(orderedData(event));
}

/** Columns of `events`. */
export const EVENT_COLUMNS = {
  day: ['date', ({ event }) => idDay('event', event.eventId)],
  id: ['text', ({ event }) => event.eventId],
  account_id: ['bigint', ({ event }) => event.accountId],
  event_type: ['text', ({ event }) => event.eventType],
  timestamp: ['text', ({ event }) => event.timestamp],
  data: ['json', ({ event }) => storedEventData(event)],
} as const satisfies UnnestColumns<{ event: JobRunEvent }>;

/** Columns that identify an event and its data, for {@link hasOtherData}. */
export const EVENT_IDENTITY_COLUMNS = {
  day: EVENT_COLUMNS.day,
  id: EVENT_COLUMNS.id,
  account_id: EVENT_COLUMNS.account_id,
  event_type: EVENT_COLUMNS.event_type,
  data_sha256: ['text', ({ event }) => hash('sha256', storedEventData(event), 'hex')],
} as const satisfies UnnestColumns<{ event: JobRunEvent }>;

/**
 * Returns SQL: whether an event on record has another type or other data than an event with the same id. Timestamps are
 * not compared, because an event that is published twice without a timestamp gets two different ones.
 * @param recorded alias of a row of `events`
 * @param input alias of a row with the columns of {@link EVENT_IDENTITY_COLUMNS}
 */
export const hasOtherData = (recorded: string, input: string) =>
  `(${recorded}.event_type <> ${input}.event_type
    OR encode(sha256(convert_to(${recorded}.data::text, 'UTF8')), 'hex') <> ${input}.data_sha256)`;
