import {
  deliveryIdFor,
  type EventSelection,
  type EventType,
  eventMatches,
  formatByName,
} from '@runhook/contract';
import { distinctDays, inDays } from './day-filter.ts';
import { isStoredEventData } from './event-data.ts';
import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

/** Position in the events of an account, in the order in which they were recorded. */
export interface EventCursor {
  /** In PostgreSQL's format, with microseconds. */
  createdAt: string;
  id: string;
}

export const FIRST_EVENT: EventCursor = { createdAt: '-infinity', id: '' };

export interface EventsToRecoverQuery {
  accountId: number | string;
  subscriptionId: string;
  /** The current subscription. */
  selection: EventSelection;
  /** Earliest time at which an event was recorded, inclusive, in PostgreSQL's format like the following two. */
  since: string;
  /** Latest time at which an event was recorded, exclusive. */
  until: string;
  /** A delivery that ended later is `settled`, because the recovery may have sent it. */
  endedUntil: string;
  after: EventCursor;
  /** Maximum number of events of a page. */
  limit: number;
}

/**
 * State in which a recovery finds an event for its subscription, which determines what it may do:
 * - `undispatched`: its fan-out is not committed, which will send it if it matches.
 * - `unsent`: it matches and has no delivery, or one that was cancelled without an attempt.
 * - `failed`, `cancelled`, `delivered`: status of its delivery, which ended; a cancelled one had attempts.
 * - `settled`: nothing; it does not match, its delivery is pending, or the event cannot be read.
 */
export type EventState = 'undispatched' | 'unsent' | 'failed' | 'cancelled' | 'delivered' | 'settled';

export interface EventToRecover extends EventCursor {
  day: string;
  eventType: EventType;
  jobId: string;
  runId: string;
  state: EventState;
  deliveryId: string;
  /** Status of the delivery; null if there is none. */
  deliveryStatus: string | null;
  /** Whether the event was recorded less than a minute ago. */
  isRecent: boolean;
}

export interface EventsToRecoverPage {
  events: EventToRecover[];
  /** Whether no event follows in the window. */
  isLast: boolean;
}

/** Maximum characters of the data of a page, beyond its first event, because one may have 524 KB. */
const PAGE_CHARACTERS_MAX = 4_000_000;

/** Number of events of a first page: the data of all is decompressed, up to 17 MB, before the page is cut by its size. */
export const FIRST_PAGE_EVENTS = 32;

/** Returns the limit of the next page: twice as many events, or only those of the page if it was cut by its size. */
export function nextPageLimit(
  { events, isLast }: EventsToRecoverPage,
  limit: number,
  limitMax: number,
): number {
  const isCut = !isLast && events.length < limit;
  return isCut ? Math.max(1, events.length) : Math.min(limit * 2, limitMax);
}

// No event id is later than tomorrow. The index of an account's events by time gives the order in each partition;
// ids sort events of one time, and are not in the index, which thus takes a third of the space. The limit of the
// subquery keeps PostgreSQL from hashing all of the account's undispatched events for each page.
const SELECT_EVENTS = `
  WITH page AS MATERIALIZED (
    SELECT e.day, e.id, e.created_at, e.event_type, e.data
    FROM events e
    WHERE e.account_id = $1 AND e.created_at >= $2::timestamptz AND e.created_at < $3::timestamptz
      AND e.day <= ($3::timestamptz AT TIME ZONE 'UTC')::date + 1
      AND (e.created_at, e.id) > ($4::timestamptz, $5::text)
    ORDER BY e.created_at, e.id
    LIMIT $6
  ), sized AS (
    SELECT p.*, count(*) OVER ()::int AS count, row_number() OVER in_order AS number,
      sum(length(p.data::text)) OVER in_order AS characters
    FROM page p WINDOW in_order AS (ORDER BY p.created_at, p.id)
  )
  SELECT s.day::text, s.id, s.created_at::text AS "createdAt", s.event_type AS "eventType", s.data, s.count,
    s.created_at > now() - interval '1 minute' AS "isRecent",
    (SELECT true FROM undispatched_events u
      WHERE u.event_id = s.id AND u.account_id = $1 AND u.day = s.day LIMIT 1) IS NOT NULL AS "isUndispatched"
  FROM sized s
  WHERE s.number = 1 OR s.characters <= ${PAGE_CHARACTERS_MAX}
  ORDER BY s.created_at, s.id`;

interface EventRow extends EventCursor {
  [column: string]: unknown;
  day: string;
  eventType: EventType;
  data: unknown;
  /** Number of events of the page before it was limited by their size. */
  count: number;
  isRecent: boolean;
  isUndispatched: boolean;
}

const SELECT_DELIVERIES = `
  SELECT d.id, d.status, d.attempt_count AS "attemptCount", d.completed_at <= $5::timestamptz AS "hasEnded"
  FROM unnest($1::date[], $2::text[]) AS k (day, id)
  JOIN deliveries d ON d.day = k.day AND d.id = k.id AND d.account_id = $3
  WHERE ${inDays('$4', 'k', 'd')}`;

interface DeliveryRow {
  [column: string]: unknown;
  id: string;
  status: string;
  attemptCount: number;
  /** Null for a pending delivery. */
  hasEnded: boolean | null;
}

/**
 * Reads a page of the events of an account in the order in which they were recorded, and what a recovery may do with
 * each. Deliveries are read after the events: a dispatched event was committed with all its deliveries.
 */
export async function loadEventsToRecover(
  database: Queryable,
  query: EventsToRecoverQuery,
): Promise<EventsToRecoverPage> {
  const { accountId, subscriptionId, selection, since, until, after, limit } = query;
  const values = [accountId, since, until, after.createdAt, after.id, limit];
  const rows = await runStatement<EventRow>(database, SELECT_EVENTS, values, 'events-to-recover');
  const candidates = rows.map((row) => ({ row, deliveryId: deliveryIdFor(row.id, subscriptionId) }));
  const deliveries = await loadDeliveries(database, query, candidates);
  const events = candidates.map(({ row, deliveryId }): EventToRecover => {
    const { day, id, createdAt, eventType, data, isRecent, isUndispatched } = row;
    const delivery = deliveries.get(deliveryId);
    const isReadable = isStoredEventData(data);
    const isMatching = isReadable && eventMatches(selection, { eventType, data }).matches;
    return {
      ...{ day, id, createdAt, eventType, deliveryId, isRecent },
      jobId: isReadable ? data.jobId : '',
      runId: isReadable ? data.runId : '',
      state: isUndispatched ? 'undispatched' : stateOf(isMatching, delivery),
      deliveryStatus: delivery?.status ?? null,
    };
  });
  const count = rows[0]?.count ?? 0;
  return { events, isLast: count < limit && rows.length === count };
}

async function loadDeliveries(
  database: Queryable,
  { accountId, endedUntil }: EventsToRecoverQuery,
  candidates: readonly { row: EventRow; deliveryId: string }[],
): Promise<Map<string, DeliveryRow>> {
  if (candidates.length === 0) return new Map();
  const days = candidates.map(({ row }) => row.day);
  const ids = candidates.map(({ deliveryId }) => deliveryId);
  const values = [days, ids, accountId, distinctDays(days), endedUntil];
  const rows = await runStatement<DeliveryRow>(database, SELECT_DELIVERIES, values, 'deliveries-to-recover');
  return new Map(rows.map((row) => [row.id, row]));
}

function stateOf(isMatching: boolean, delivery: DeliveryRow | undefined): EventState {
  if (delivery === undefined) return isMatching ? 'unsent' : 'settled';
  const { status, attemptCount, hasEnded } = delivery;
  if (!hasEnded) return 'settled';
  if (status === 'failed') return 'failed';
  if (status === 'cancelled' && attemptCount > 0) return 'cancelled';
  if (!isMatching) return 'settled';
  if (status === 'cancelled') return 'unsent';
  return status === 'delivered' ? 'delivered' : 'settled';
}

/** Events that a recovery may include. */
export const EVENT_INCLUSIONS = ['unsent', 'all'] as const;
export type EventInclusion = (typeof EVENT_INCLUSIONS)[number];

/** Returns the states of the events that a recovery sends. @param resendDelivered whether `all` has the delivered ones, too */
export function statesToRecover(include: EventInclusion, resendDelivered: boolean): readonly EventState[] {
  if (include === 'unsent') return ['unsent'];
  return ['unsent', 'failed', 'cancelled', ...(resendDelivered ? (['delivered'] as const) : [])];
}

/** Returns the event types that the format of a subscription sends; deliveries of the others would be cancelled. */
export function sentEventTypes(eventTypes: readonly string[], format: string | null): readonly string[] {
  const sent: readonly string[] | undefined = format === null ? undefined : formatByName(format)?.eventTypes;
  return sent === undefined ? eventTypes : eventTypes.filter((type) => sent.includes(type));
}
