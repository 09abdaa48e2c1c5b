import {
  createId,
  type EventIdLimits,
  isId,
  type JobRunEvent,
  nanosecondTimestamp,
  type Problem,
  parseEvent,
  RUN_TIMES,
} from '@runhook/contract';
import { storedEventData } from '@runhook/database';
import type { Clock } from '@runhook/runtime';
import Joi from 'joi';
import { BODY_BYTES_MAX } from '../http/body.ts';
import { type AccountEndpoint, REPORT_RUNS } from '../http/endpoint.ts';
import type { EndpointResponse } from '../http/envelope.ts';
import { InvalidRequestError } from '../http/errors.ts';
import { parseBody } from '../http/parse-body.ts';
import type { PublishedEvents, PublishOutcome } from './published-events.ts';

/** Maximum number of events of one call. */
export const EVENTS_MAX = 500;
/** Maximum number of JSON values in a body: an event has some twenty, and perhaps further fields, which are dropped. */
const VALUES_MAX = 60 * EVENTS_MAX;

export const VERDICTS = ['accepted', 'duplicate', 'rejected'] as const;

/**
 * Result for one event: `accepted` is newly recorded, `duplicate` was recorded before, `rejected` is invalid or has the
 * id of an event with other data.
 */
export interface EventVerdict {
  /** Client-supplied or assigned id of the event; null for a rejected event without a valid id. */
  event_id: string | null;
  verdict: (typeof VERDICTS)[number];
  /** Problems of a rejected event, each field by its path in the event. */
  errors?: Problem[];
}

export interface PublishResult {
  accepted_count: number;
  duplicate_count: number;
  rejected_count: number;
  /** Verdicts in the order of the events. */
  events: EventVerdict[];
}

/**
 * `POST …/events/` (docs/contract.md#publishing-over-rest) accepts events in the format of the queue, from runners
 * without a BullMQ client. Invalid events do not affect the others. If all are invalid, the response is a 400.
 * @param deps.retentionDays events with older ids are rejected, as on the queue
 * @param deps.clock the clock of PostgreSQL
 */
export function publishEndpoint(deps: {
  publishedEvents: PublishedEvents;
  retentionDays: number;
  clock: Clock;
}): AccountEndpoint {
  const { publishedEvents, retentionDays, clock } = deps;
  return {
    method: 'POST',
    path: '/api/v2/accounts/:account_id/events',
    access: REPORT_RUNS,
    isBatched: true,
    bodyBytesMax: BODY_BYTES_MAX.events,
    bodyValuesMax: VALUES_MAX,
    async handle({ account, body, version, recorder }) {
      const limits = { nowMs: clock.nowMs(), retentionDays };
      const checkedEvents = parseBody(schema, body).events.map((event) =>
        checkEvent(event, account.id, limits),
      );
      const rejectedEvents = checkedEvents.filter(({ problems }) => problems !== undefined);
      if (rejectedEvents.length === checkedEvents.length)
        throw new InvalidRequestError(bodyProblems(checkedEvents));
      const distinctEvents = new Map<string, JobRunEvent>();
      for (const { event } of checkedEvents)
        if (event && !distinctEvents.has(event.eventId)) distinctEvents.set(event.eventId, event);
      const reporting = { accountId: account.id, version, recorder };
      return await publishedEvents.publish(reporting, [...distinctEvents.values()], (outcome) =>
        publishResponse(checkedEvents, distinctEvents, outcome),
      );
    },
  };
}

const schema = Joi.object<{ events: unknown[] }>({
  events: Joi.array().items(Joi.any()).min(1).max(EVENTS_MAX).required(),
}).required();

type CheckedEvent =
  | { event: JobRunEvent; problems?: never }
  | { event?: never; eventId: string | null; problems: Problem[] };

function checkEvent(rawEvent: unknown, accountId: number, limits: EventIdLimits): CheckedEvent {
  const { nowMs } = limits;
  const { event, problems } = parseEvent(completeEvent(rawEvent, nowMs), {
    eventId: () => createId('event', nowMs),
    timestampMs: nowMs,
    ...limits,
  });
  if (event?.accountId === accountId) return { event };
  const message = `accountId must be ${accountId}, the account of the path`;
  const id = (rawEvent as { eventId?: unknown } | null)?.eventId;
  const eventId = isId('event', id) ? id : null;
  return { eventId, problems: problems ?? [{ field: 'accountId', message }] };
}

/**
 * Adds omitted fields, because only a complete event skips the slower check by the schema, and normalizes the times of
 * the run as the Runs API does: some clients write UTC as `+00:00` and fractions of a second.
 */
function completeEvent(rawEvent: unknown, nowMs: number): unknown {
  if (!isObject(rawEvent)) return rawEvent;
  const { eventId = createId('event', nowMs), timestamp = new Date(nowMs).toISOString(), data } = rawEvent;
  return { ...rawEvent, eventId, timestamp, data: isObject(data) ? truncateToSeconds(data) : data };
}

const TIMES = ['runStartedAt', ...Object.keys(RUN_TIMES)];

function truncateToSeconds(data: Fields): Fields {
  const truncated: Fields = { ...data };
  for (const name of TIMES) {
    const { [name]: value } = data;
    const time = typeof value === 'string' ? nanosecondTimestamp(value) : null;
    if (time !== null) truncated[name] = `${time.slice(0, 19)}Z`;
  }
  return truncated;
}

type Fields = Record<string, unknown>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const CONFLICT: Problem = {
  field: 'eventId',
  message: 'eventId names an event that is on record with other data',
};

/** @param distinctEvents the first event of each id in the call */
function publishResponse(
  checkedEvents: readonly CheckedEvent[],
  distinctEvents: ReadonlyMap<string, JobRunEvent>,
  { added, conflicting }: PublishOutcome,
): EndpointResponse {
  const counts = { accepted: 0, duplicate: 0, rejected: 0 };
  const verdictOf = (event: JobRunEvent): Omit<EventVerdict, 'event_id'> => {
    const first = distinctEvents.get(event.eventId) as JobRunEvent;
    if (conflicting.has(event.eventId) || !isSameEvent(event, first))
      return { verdict: 'rejected', errors: [stripFieldName(CONFLICT)] };
    return { verdict: event === first && added.has(event.eventId) ? 'accepted' : 'duplicate' };
  };
  const events = checkedEvents.map((one): EventVerdict => {
    const verdict: EventVerdict = one.problems
      ? { event_id: one.eventId, verdict: 'rejected', errors: one.problems.map(stripFieldName) }
      : { event_id: one.event.eventId, ...verdictOf(one.event) };
    counts[verdict.verdict] += 1;
    return verdict;
  });
  const data: PublishResult = {
    accepted_count: counts.accepted,
    duplicate_count: counts.duplicate,
    rejected_count: counts.rejected,
    events,
  };
  return { code: 202, data };
}

function isSameEvent(one: JobRunEvent, other: JobRunEvent): boolean {
  return one.eventType === other.eventType && storedEventData(one) === storedEventData(other);
}

/** Removes the name of the field from the message, because the field is shown with it. */
function stripFieldName({ field, message }: Problem): Problem {
  return { field, message: message.startsWith(`${field} `) ? message.slice(field.length + 1) : message };
}

/** Maximum number of reported problems of a call, but at least one for each event. */
const PROBLEMS_MAX = 20;

/** Returns the problems of a call without a valid event, as fields of the body. */
function bodyProblems(checkedEvents: readonly CheckedEvent[]): Problem[] {
  const problemsPerEvent = Math.max(1, Math.floor(PROBLEMS_MAX / checkedEvents.length));
  return checkedEvents.flatMap(({ problems = [] }, index) =>
    problems.slice(0, problemsPerEvent).map((problem) => {
      const { field, message } = stripFieldName(problem);
      const path = field === 'event' ? `${index}` : `${index}.${field}`;
      return { field: `events.${path}`, message: `events.${path} ${message}` };
    }),
  );
}
