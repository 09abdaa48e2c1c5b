import { type EventKey, idDay, type JobRunEvent, orderedData } from '@runhook/contract';
import {
  distinctDays,
  EVENT_IDENTITY_COLUMNS,
  hasOtherData,
  inDays,
  isStoredEventData,
  type Pool,
  type Queryable,
  runStatement,
  type StoredEventData,
  type UnnestColumns,
  unnestParameterCount,
  unnestSql,
  unnestValues,
} from '@runhook/database';

/**
 * Recorded state of an event, read before any of its requests is sent:
 * - `new`: nothing.
 * - `undispatched`: the event, and no commit of all its deliveries.
 * - `dispatched`: the event and its deliveries.
 * - `conflict`: an event of this id with another type or other data. The record stores one body and never changes it.
 * - `outdated`: the account has another version than the plan; nothing else was compared.
 */
export type EventStatus = 'new' | 'undispatched' | 'dispatched' | 'conflict' | 'outdated';

export interface EventState {
  status: EventStatus;
  /** Timestamp of the event on record, which all attempts send; null if it is not on record. */
  timestamp: string | null;
}

/** An event, and the version of its account for which its deliveries are planned; null for any version. */
export interface PlannedEvent {
  event: JobRunEvent;
  version: string | null;
}

const PLANNED_COLUMNS: UnnestColumns<PlannedEvent> = {
  ...EVENT_IDENTITY_COLUMNS,
  version: ['bigint', ({ version }) => version],
};

/** Returns SQL that finds the row of an event in `undispatched_events u` by its key. */
export const matchesUndispatched = (day: string, eventId: string, accountId: string) =>
  `u.day = ${day} AND u.event_id = ${eventId} AND u.account_id = ${accountId}`;

const DAYS_PARAMETER = `$${1 + unnestParameterCount(PLANNED_COLUMNS)}`;
const SELECT_EVENT_STATES = `
  SELECT i.n::int, e."timestamp",
    CASE WHEN i.version IS NOT NULL AND a.version IS DISTINCT FROM i.version THEN 'outdated'
         WHEN e.id IS NULL THEN 'new'
         WHEN ${hasOtherData('e', 'i')} THEN 'conflict'
         WHEN u.event_id IS NULL THEN 'dispatched'
         ELSE 'undispatched' END AS status
  FROM ${unnestSql(PLANNED_COLUMNS, 1, 'i', 'n')}
  LEFT JOIN accounts a ON a.id = i.account_id
  LEFT JOIN events e ON e.day = i.day AND e.id = i.id AND e.account_id = i.account_id
    AND ${inDays(DAYS_PARAMETER, 'e')}
  LEFT JOIN undispatched_events u ON ${matchesUndispatched('i.day', 'i.id', 'i.account_id')}
  WHERE ${inDays(DAYS_PARAMETER, 'i')}`;

/** Returns the state of each event, in input order, by one statement. */
export async function loadEventStates(pool: Pool, events: readonly PlannedEvent[]): Promise<EventState[]> {
  const values = unnestValues(PLANNED_COLUMNS, events);
  const rows = await runStatement<{ n: number; status: EventStatus; timestamp: string | null }>(
    pool,
    SELECT_EVENT_STATES,
    [...values, daysOf(events.map(({ event }) => event))],
    'event-states',
  );
  const states: EventState[] = events.map(() => ({ status: 'outdated', timestamp: null }));
  for (const { n, status, timestamp } of rows) states[n - 1] = { status, timestamp };
  return states;
}

function daysOf(events: readonly Pick<EventKey, 'eventId'>[]): string[] {
  return distinctDays(events.map(({ eventId }) => idDay('event', eventId)));
}

const LOAD_EVENTS = `
  SELECT e.id AS "eventId", e.event_type AS "eventType", e.account_id AS "accountId", e."timestamp", e.data
  FROM unnest($1::date[], $2::text[], $3::bigint[]) WITH ORDINALITY AS i (day, id, account_id, n)
  JOIN events e ON e.day = i.day AND e.id = i.id AND e.account_id = i.account_id
  WHERE ${inDays('$4', 'i', 'e')}
  ORDER BY i.n`;

interface EventRow {
  [column: string]: unknown;
  eventId: string;
  eventType: string;
  accountId: string;
  timestamp: string;
  data: StoredEventData;
}

/**
 * Returns the events that are on record, in input order, without those that retention has deleted.
 * @throws TypeError when the data of one cannot be read
 */
export async function loadEvents(database: Queryable, keys: readonly EventKey[]): Promise<JobRunEvent[]> {
  return (await selectEvents(database, keys)).map((row) => {
    if (!isStoredEventData(row.data)) throw new TypeError(`the data of event ${row.eventId} cannot be read`);
    return toEvent(row);
  });
}

/** Returns the events like {@link loadEvents}, without those whose data cannot be read. */
export async function loadReadableEvents(
  database: Queryable,
  keys: readonly EventKey[],
): Promise<JobRunEvent[]> {
  const rows = await selectEvents(database, keys);
  return rows.filter(({ data }) => isStoredEventData(data)).map(toEvent);
}

async function selectEvents(database: Queryable, keys: readonly EventKey[]): Promise<EventRow[]> {
  const values = [
    keys.map(({ eventId }) => idDay('event', eventId)),
    keys.map(({ eventId }) => eventId),
    keys.map(({ accountId }) => accountId),
    daysOf(keys),
  ];
  return await runStatement<EventRow>(database, LOAD_EVENTS, values, 'load-events');
}

function toEvent({ data, ...row }: EventRow): JobRunEvent {
  return {
    ...row,
    accountId: Number(row.accountId),
    data: orderedData({ eventType: row.eventType, data } as JobRunEvent),
  } as JobRunEvent;
}
