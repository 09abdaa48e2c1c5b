import Joi from 'joi';
import {
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  isEventType,
  RUN_FIELDS,
  type RunDetails,
} from './event-types.ts';
import type { JobRunEvent, PublishedEvent } from './events.ts';
import {
  boundedText,
  integerIdFromText,
  isIntegerId,
  type Problem,
  problemsOf,
  VALIDATION_OPTIONS,
} from './field-problems.ts';
import { idTimeMs } from './ids.ts';
import { orderedData } from './payload.ts';
import { isLongerThan } from './text.ts';
import { isSecondsTimestamp, nanosecondTimestamp } from './timestamps.ts';

/** Length of the texts of an event in code points: names and versions, and the two messages of a run. */
export const EVENT_LIMITS = { nameCharactersMax: 1_024, messageCharactersMax: 65_536 } as const;

/** What stands in for `eventId` and `timestamp` when the publisher left them out, and the limits of an id's age. */
export interface EventDefaults {
  /** Called only for an event that has none. */
  eventId: () => string;
  timestampMs: number;
  nowMs: number;
  /** Ids older than this are refused: their day partition may be gone. */
  retentionDays: number;
}

export type EventParsing = { event: JobRunEvent; problems?: never } | { event?: never; problems: Problem[] };

/**
 * A complete event from what was published, the data of a job on `job-run-events`: unknown fields dropped, `timestamp`
 * padded to nine digits, `data` in the order of docs/contract.md#events, its text well-formed. Returns every problem with its field instead
 * if the event is invalid.
 * Called where an event is published and again where it is consumed.
 */
export function parseEvent(published: unknown, defaults: EventDefaults): EventParsing {
  const { value, problems } = checkedEvent(published);
  if (problems) return { problems };
  const eventId = value.eventId ?? defaults.eventId();
  const ageProblem = eventIdAgeProblem(eventId, defaults);
  if (ageProblem) return { problems: [{ field: 'eventId', message: ageProblem }] };
  const timestamp = nanosecondTimestamp(
    value.timestamp ?? new Date(defaults.timestampMs).toISOString(),
  ) as string;
  const { eventType, accountId } = value;
  return {
    event: { eventId, eventType, accountId, timestamp, data: orderedData(value) } as JobRunEvent,
  };
}

const DAY_MS = 86_400_000;

/** The clock and the retention by which the time in an event's id is checked. */
export type EventIdLimits = Pick<EventDefaults, 'nowMs' | 'retentionDays'>;

/** Whether this is the id of an event whose time is outside the log, because its publisher has a wrong clock. */
export function isEventIdOutOfRange(eventId: unknown, limits: EventIdLimits): boolean {
  return (
    typeof eventId === 'string' &&
    idTimeMs('event', eventId) !== null &&
    eventIdAgeProblem(eventId, limits) !== null
  );
}

function eventIdAgeProblem(eventId: string, { nowMs, retentionDays }: EventIdLimits): string | null {
  const timeMs = idTimeMs('event', eventId) ?? Number.NaN;
  if (timeMs < nowMs - retentionDays * DAY_MS)
    return `eventId is older than the ${retentionDays} days of the log`;
  if (timeMs > nowMs + DAY_MS) return 'eventId carries a time more than a day ahead';
  return null;
}

type Checked = { value: PublishedEvent; problems?: never } | { value?: never; problems: Problem[] };

function checkedEvent(published: unknown): Checked {
  return isPlainEvent(published) ? { value: published } : checkedBySchema(published);
}

type Fields = Record<string, unknown>;

/**
 * Whether an event is right beyond question, by the rules of the Joi schema and at a tenth of its cost. False says
 * nothing: the schema then decides, and names what is wrong. A test holds the two together.
 */
export function isPlainEvent(published: unknown): published is PublishedEvent {
  if (!isObject(published)) return false;
  const { eventId, eventType, accountId, timestamp, data } = published;
  return (
    typeof eventId === 'string' &&
    idTimeMs('event', eventId) !== null &&
    isEventType(eventType) &&
    isIntegerId(accountId) &&
    typeof timestamp === 'string' &&
    nanosecondTimestamp(timestamp) !== null &&
    isObject(data) &&
    isPlainData(data, eventType)
  );
}

type FieldKind = (typeof RUN_FIELDS)[keyof RunDetails];

const FIELDS = Object.entries(RUN_FIELDS).map(([name, kind]) => ({ name, kind }));

function isPlainData(data: Fields, eventType: EventType): boolean {
  const { time } = EVENT_TYPE_TABLE[eventType];
  return FIELDS.every(({ name, kind }) => isPlain(kind, data[name])) && (time === null || isTime(data[time]));
}

function isPlain(kind: FieldKind, value: unknown): boolean {
  switch (kind) {
    case 'id':
      return isIdText(value);
    case 'name':
      return isText(value, EVENT_LIMITS.nameCharactersMax);
    case 'message':
      return isText(value, EVENT_LIMITS.messageCharactersMax);
    case 'code':
      return Number.isSafeInteger(value);
    case 'time':
      return isTime(value);
  }
}

function isIdText(value: unknown): boolean {
  return typeof value === 'string' && integerIdFromText(value) !== null;
}

function isText(value: unknown, charactersMax: number): boolean {
  return typeof value === 'string' && !isLongerThan(value, charactersMax);
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && isSecondsTimestamp(value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function checkedBySchema(published: unknown): Checked {
  const { value, error } = schemaFor(published).validate(published, VALIDATION_OPTIONS);
  return error ? { problems: problemsOf(error, 'event') } : { value };
}

function schemaFor(published: unknown): Joi.ObjectSchema<PublishedEvent> {
  const eventType = (published as { eventType?: unknown } | null | undefined)?.eventType;
  return isEventType(eventType) ? EVENT_SCHEMAS[eventType] : UNKNOWN_TYPE_SCHEMA;
}

const check = (test: (value: string) => boolean, message: string): Joi.StringSchema =>
  Joi.string()
    .required()
    .custom((value: string, helpers) =>
      test(value) ? value : helpers.message({ custom: `{{#label}} ${message}` }),
    );

const FIELD_SCHEMAS: Record<FieldKind, Joi.Schema> = {
  id: check((text) => integerIdFromText(text) !== null, 'must be an id: digits in a string'),
  name: boundedText(EVENT_LIMITS.nameCharactersMax).allow('').required(),
  message: boundedText(EVENT_LIMITS.messageCharactersMax).allow('').required(),
  code: Joi.number().integer().required(),
  time: check(isSecondsTimestamp, 'must be a UTC time like 2026-01-31T23:59:59Z'),
};

function dataSchema(eventType: EventType): Joi.ObjectSchema {
  const fields: Record<string, Joi.Schema> = {};
  for (const [name, kind] of Object.entries(RUN_FIELDS)) fields[name] = FIELD_SCHEMAS[kind];
  const { time } = EVENT_TYPE_TABLE[eventType];
  if (time !== null) fields[time] = FIELD_SCHEMAS.time;
  return Joi.object(fields);
}

const schemaOf = (data: Joi.ObjectSchema) =>
  Joi.object<PublishedEvent>({
    eventId: check(
      (text) => idTimeMs('event', text) !== null,
      'must be wev_ and a KSUID (27 base62 characters)',
    ).optional(),
    eventType: Joi.string()
      .valid(...EVENT_TYPES)
      .required(),
    accountId: Joi.number()
      .required()
      .custom((value: number, helpers) =>
        isIntegerId(value) ? value : helpers.message({ custom: '{{#label}} must be a positive integer' }),
      ),
    timestamp: check((text) => nanosecondTimestamp(text) !== null, 'must be an RFC 3339 UTC time').optional(),
    data: data.required(),
  }).required();

const EVENT_SCHEMAS = Object.fromEntries(
  EVENT_TYPES.map((eventType) => [eventType, schemaOf(dataSchema(eventType))]),
) as Record<EventType, Joi.ObjectSchema<PublishedEvent>>;
const UNKNOWN_TYPE_SCHEMA = schemaOf(Joi.object());
