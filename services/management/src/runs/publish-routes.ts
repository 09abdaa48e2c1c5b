import {
  createId,
  type EventIdLimits,
  isId,
  type JobRunEvent,
  nanosecondTimestamp,
  type Problem,
  parseEvent,
  problemsOf,
  RUN_TIMES,
  VALIDATION_OPTIONS,
} from '@runhook/contract';
import { storedEventData } from '@runhook/database';
import type { Clock } from '@runhook/runtime';
import Joi from 'joi';
import { BODY_BYTES_MAX } from '../http/body.ts';
import { type AccountEndpoint, REPORT_RUNS } from '../http/endpoint.ts';
import type { Answer } from '../http/envelope.ts';
import { InvalidRequestError } from '../http/errors.ts';
import type { Published, PublishedEvents } from './published-events.ts';

/** Maximum number of events of one call. */
export const EVENTS_MAX = 500;
/** An event has some twenty values; unknown fields are permitted and dropped. */
const VALUES_MAX = 60 * EVENTS_MAX;

export const VERDICTS = ['accepted', 'known', 'refused'] as const;

/** Result for one event: `accepted` is newly recorded, `known` was recorded before, `refused` is invalid. */
export interface EventVerdict {
  /** Client-supplied or assigned id of the event; null for a rejected event without a valid id. */
  event_id: string | null;
  verdict: (typeof VERDICTS)[number];
  /** Problems of a rejected event, each field by its path in the event. */
  errors?: Problem[];
}

export interface Publishing {
  accepted_count: number;
  known_count: number;
  refused_count: number;
  /** Verdicts in the order of the events. */
  events: EventVerdict[];
}

/**
 * `POST …/events/` (docs/contract.md#publishing-over-rest) accepts events as the queue does, for runners without a
 * BullMQ client. Invalid events do not affect the others. If all are invalid, the response is a 400.
 * @param deps.retentionDays older ids are rejected, as on the queue
 * @param deps.clock the clock of PostgreSQL
 */
export function publishEndpoint(deps: {
  published: PublishedEvents;
  retentionDays: number;
  clock: Clock;
}): AccountEndpoint {
  const { published, retentionDays, clock } = deps;
  return {
    method: 'POST',
    path: '/api/v2/accounts/:account_id/events',
    access: REPORT_RUNS,
    isCommittedTogether: true,
    bodyBytesMax: BODY_BYTES_MAX.events,
    bodyValuesMax: VALUES_MAX,
    async handle({ account, body, version, keep }) {
      const limits = { nowMs: clock.nowMs(), retentionDays };
      const checked = parseEvents(body).map((event) => checkedEvent(event, account.id, limits));
      const refused = checked.filter(({ problems }) => problems !== undefined);
      if (refused.length === checked.length) throw new InvalidRequestError(toldOf(checked));
      const distinct = new Map<string, JobRunEvent>();
      for (const { event } of checked)
        if (event && !distinct.has(event.eventId)) distinct.set(event.eventId, event);
      const reporting = { accountId: account.id, version, keep };
      return await published.publish(reporting, [...distinct.values()], (outcome) =>
        answered(checked, distinct, outcome),
      );
    },
  };
}

const schema = Joi.object<{ events: unknown[] }>({
  events: Joi.array().items(Joi.any()).min(1).max(EVENTS_MAX).required(),
});

function parseEvents(body: unknown): unknown[] {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  if (error) throw new InvalidRequestError(problemsOf(error, 'body'));
  return value.events;
}

type Checked =
  | { event: JobRunEvent; problems?: never }
  | { event?: never; eventId: string | null; problems: Problem[] };

function checkedEvent(published: unknown, accountId: number, limits: EventIdLimits): Checked {
  const { nowMs } = limits;
  const { event, problems } = parseEvent(completed(published, nowMs), {
    eventId: () => createId('event', nowMs),
    timestampMs: nowMs,
    ...limits,
  });
  if (event?.accountId === accountId) return { event };
  const message = `accountId must be ${accountId}, the account of the path`;
  const id = (published as { eventId?: unknown } | null)?.eventId;
  const eventId = isId('event', id) ? id : null;
  return { eventId, problems: problems ?? [{ field: 'accountId', message }] };
}

/**
 * Adds omitted fields, because only a complete event skips the slower check by the schema, and normalizes the times of
 * the run as the Runs API does: some clients write UTC as `+00:00` and fractions of a second.
 */
function completed(published: unknown, nowMs: number): unknown {
  if (!isObject(published)) return published;
  const { eventId = createId('event', nowMs), timestamp = new Date(nowMs).toISOString(), data } = published;
  return { ...published, eventId, timestamp, data: isObject(data) ? withWholeSeconds(data) : data };
}

const TIMES = ['runStartedAt', ...Object.keys(RUN_TIMES)];

function withWholeSeconds(data: Fields): Fields {
  const cut: Fields = { ...data };
  for (const name of TIMES) {
    const { [name]: told } = data;
    const time = typeof told === 'string' ? nanosecondTimestamp(told) : null;
    if (time !== null) cut[name] = `${time.slice(0, 19)}Z`;
  }
  return cut;
}

type Fields = Record<string, unknown>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const CONFLICT: Problem = {
  field: 'eventId',
  message: 'eventId names an event that is on record with other data',
};

/** @param distinct the first event of each id in the call */
function answered(
  checked: readonly Checked[],
  distinct: ReadonlyMap<string, JobRunEvent>,
  { added, conflicting }: Published,
): Answer {
  const counts = { accepted: 0, known: 0, refused: 0 };
  const verdictOf = (event: JobRunEvent): Omit<EventVerdict, 'event_id'> => {
    const first = distinct.get(event.eventId) as JobRunEvent;
    if (conflicting.has(event.eventId) || !isSameEvent(event, first))
      return { verdict: 'refused', errors: [withoutName(CONFLICT)] };
    return { verdict: event === first && added.has(event.eventId) ? 'accepted' : 'known' };
  };
  const events = checked.map((one): EventVerdict => {
    const verdict: EventVerdict = one.problems
      ? { event_id: one.eventId, verdict: 'refused', errors: one.problems.map(withoutName) }
      : { event_id: one.event.eventId, ...verdictOf(one.event) };
    counts[verdict.verdict] += 1;
    return verdict;
  });
  const data: Publishing = {
    accepted_count: counts.accepted,
    known_count: counts.known,
    refused_count: counts.refused,
    events,
  };
  return { code: 202, data };
}

function isSameEvent(one: JobRunEvent, other: JobRunEvent): boolean {
  return one.eventType === other.eventType && storedEventData(one) === storedEventData(other);
}

/** Removes the name of the field from the message, because the field is shown with it. */
function withoutName({ field, message }: Problem): Problem {
  return { field, message: message.startsWith(`${field} `) ? message.slice(field.length + 1) : message };
}

/** Maximum number of reported problems of a call, but at least one for each event. */
const PROBLEMS_MAX = 20;

/** Returns the problems of a call without a valid event, as fields of the body. */
function toldOf(checked: readonly Checked[]): Problem[] {
  const each = Math.max(1, Math.floor(PROBLEMS_MAX / checked.length));
  return checked.flatMap(({ problems = [] }, index) =>
    problems.slice(0, each).map((problem) => {
      const { field, message } = withoutName(problem);
      const path = field === 'event' ? `${index}` : `${index}.${field}`;
      return { field: `events.${path}`, message: `events.${path} ${message}` };
    }),
  );
}
