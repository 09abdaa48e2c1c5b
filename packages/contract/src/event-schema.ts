import Joi from 'joi';
import { EVENT_TYPES, type EventType, isEventType, type JobRunEvent, type PublishedEvent } from './events.ts';
import {
  integerIdFromText,
  isIntegerId,
  type Problem,
  problemsOf,
  VALIDATION_OPTIONS,
} from './field-problems.ts';
import { idTimeMs } from './ids.ts';
import { orderedData } from './payload.ts';
import { isSecondsTimestamp, nanosecondTimestamp } from './timestamps.ts';

type Fields = Record<string, unknown>;

/** How long a text of an event may be: names and versions, and what is said about a run. */
export const EVENT_LIMITS = { nameCharactersMax: 1_024, messageCharactersMax: 65_536 } as const;

const ID_FIELDS = ['jobId', 'runId', 'environmentId', 'projectId'] as const;
const NAME_FIELDS = ['jobName', 'environmentName', 'engineVersion', 'projectName', 'runStatus'] as const;
const MESSAGE_FIELDS = ['runStatusMessage', 'runReason'] as const;

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
    isPlainData(data) &&
    (eventType !== 'job.run.completed' || isTime(data.runFinishedAt)) &&
    (eventType !== 'job.run.errored' || isTime(data.runErroredAt))
  );
}

function isPlainData(data: Fields): boolean {
  return (
    ID_FIELDS.every((name) => isIdText(data[name])) &&
    NAME_FIELDS.every((name) => isText(data[name], EVENT_LIMITS.nameCharactersMax)) &&
    MESSAGE_FIELDS.every((name) => isText(data[name], EVENT_LIMITS.messageCharactersMax)) &&
    Number.isSafeInteger(data.runStatusCode) &&
    isTime(data.runStartedAt)
  );
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isIdText(value: unknown): boolean {
  return typeof value === 'string' && integerIdFromText(value) !== null;
}

function isText(value: unknown, charactersMax: number): boolean {
  return typeof value === 'string' && value.length <= charactersMax;
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && isSecondsTimestamp(value);
}

const DAY_MS = 86_400_000;

const check = (test: (value: string) => boolean, message: string): Joi.StringSchema =>
  Joi.string()
    .required()
    .custom((value: string, helpers) =>
      test(value) ? value : helpers.message({ custom: `{{#label}} ${message}` }),
    );

const idText = check((text) => integerIdFromText(text) !== null, 'must be an id: digits in a string');
const nameText = Joi.string().allow('').max(EVENT_LIMITS.nameCharactersMax).required();
const messageText = Joi.string().allow('').max(EVENT_LIMITS.messageCharactersMax).required();
const secondsText = check(isSecondsTimestamp, 'must be a UTC time like 2026-01-31T23:59:59Z');

const runDetails = {
  jobId: idText,
  jobName: nameText,
  runId: idText,
  environmentId: idText,
  environmentName: nameText,
  engineVersion: nameText,
  projectName: nameText,
  projectId: idText,
  runStatus: nameText,
  runStatusCode: Joi.number().integer().required(),
  runStatusMessage: messageText,
  runReason: messageText,
  runStartedAt: secondsText,
};

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

/** The data of a job on `job-run-events`. Checked where it is published and again where it is consumed. */
const EVENT_SCHEMAS: Record<EventType, Joi.ObjectSchema<PublishedEvent>> = {
  'job.run.started': schemaOf(Joi.object(runDetails)),
  'job.run.completed': schemaOf(Joi.object({ ...runDetails, runFinishedAt: secondsText })),
  'job.run.errored': schemaOf(Joi.object({ ...runDetails, runErroredAt: secondsText })),
};
const UNKNOWN_TYPE_SCHEMA = schemaOf(Joi.object());

function schemaFor(published: unknown): Joi.ObjectSchema<PublishedEvent> {
  const eventType = (published as { eventType?: unknown } | null | undefined)?.eventType;
  return isEventType(eventType) ? EVENT_SCHEMAS[eventType] : UNKNOWN_TYPE_SCHEMA;
}

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
 * A complete event from what was published: unknown fields dropped, `timestamp` padded to nine digits, `data` in
 * the order of docs/contract.md#events. Or every problem, each with its field.
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
    event: { eventId, eventType, accountId, timestamp, data: orderedData(value) } as unknown as JobRunEvent,
  };
}

type Checked = { value: PublishedEvent; problems?: never } | { value?: never; problems: Problem[] };

function checkedEvent(published: unknown): Checked {
  return isPlainEvent(published) ? { value: published } : checkedBySchema(published);
}

export function checkedBySchema(published: unknown): Checked {
  const { value, error } = schemaFor(published).validate(published, VALIDATION_OPTIONS);
  return error ? { problems: problemsOf(error, 'event') } : { value };
}

function eventIdAgeProblem(eventId: string, { nowMs, retentionDays }: EventDefaults): string | null {
  const timeMs = idTimeMs('event', eventId) ?? Number.NaN;
  if (timeMs < nowMs - retentionDays * DAY_MS)
    return `eventId is older than the ${retentionDays} days of the log`;
  if (timeMs > nowMs + DAY_MS) return 'eventId carries a time more than a day ahead';
  return null;
}
