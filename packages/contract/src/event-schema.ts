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
  toProblems,
  VALIDATION_OPTIONS,
} from './field-problems.ts';
import { idTimeMs } from './ids.ts';
import { orderedData } from './payload.ts';
import { isLongerThan } from './text.ts';
import { isIsoSecondsTime, nanosecondTimestamp } from './timestamps.ts';

/** Maximum lengths in code points of the values of kind `name` and `message` in `RUN_FIELDS`. */
export const EVENT_LIMITS = { nameCharactersMax: 1_024, messageCharactersMax: 65_536 } as const;

/** Values for `eventId` and `timestamp` if the publisher omitted them, and the limits for the age of an id. */
export interface EventDefaults {
  /** Called only for an event without an id. */
  eventId: () => string;
  timestampMs: number;
  nowMs: number;
  /** Older ids are rejected, because their day partition may have been dropped. */
  retentionDays: number;
}

export type EventParsing = { event: JobRunEvent; problems?: never } | { event?: never; problems: Problem[] };

/**
 * Parses a published event, the data of a job on `job-run-events`: drops unknown fields, pads `timestamp` to nine
 * digits, orders `data` as in docs/contract.md#events and repairs its text. If the event is invalid, returns up to 20
 * problems, each with its field, instead. Called when an event is published and again when it is consumed.
 */
export function parseEvent(published: unknown, defaults: EventDefaults): EventParsing {
  const { value, problems } = checkEvent(published);
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

/** The clock and the retention against which the time in an event's id is checked. */
export type EventIdLimits = Pick<EventDefaults, 'nowMs' | 'retentionDays'>;

/** Whether the time in an event id is older than the retention or over a day ahead, as of a publisher's wrong clock. */
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

function checkEvent(published: unknown): Checked {
  return isPlainEvent(published) ? { value: published } : checkBySchema(published);
}

type Fields = Record<string, unknown>;

/**
 * Whether an event is certainly valid by the rules of the Joi schema, at a tenth of its cost. False is not a verdict:
 * the caller then validates with the schema, which also names the problems. plain-event.test.ts compares the two.
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
  return typeof value === 'string' && isIsoSecondsTime(value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function checkBySchema(published: unknown): Checked {
  const { value, error } = schemaFor(published).validate(published, VALIDATION_OPTIONS);
  return error ? { problems: toProblems(error, 'event') } : { value };
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
  time: check(isIsoSecondsTime, 'must be a UTC time like 2026-01-31T23:59:59Z'),
};

function dataSchema(eventType: EventType): Joi.ObjectSchema {
  const fields: Record<string, Joi.Schema> = {};
  for (const [name, kind] of Object.entries(RUN_FIELDS)) fields[name] = FIELD_SCHEMAS[kind];
  const { time } = EVENT_TYPE_TABLE[eventType];
  if (time !== null) fields[time] = FIELD_SCHEMAS.time;
  return Joi.object(fields);
}

const createSchema = (data: Joi.ObjectSchema) =>
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
  EVENT_TYPES.map((eventType) => [eventType, createSchema(dataSchema(eventType))]),
) as Record<EventType, Joi.ObjectSchema<PublishedEvent>>;
const UNKNOWN_TYPE_SCHEMA = createSchema(Joi.object());
