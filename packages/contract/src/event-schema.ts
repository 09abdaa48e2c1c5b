import Joi from 'joi';
import { EVENT_TYPES, type EventType, isEventType } from './event-types.ts';
import type { JobRunEvent, PublishedEvent } from './events.ts';
import { idTimeMs } from './ids.ts';
import { EVENT_LIMITS, isPlainEvent } from './plain-event.ts';
import { type Problem, problemsOf, VALIDATION_OPTIONS } from './problems.ts';
import { orderedData } from './render-payload.ts';
import { integerIdFromText, isIntegerId } from './text-schemas.ts';
import { isSecondsTimestamp, nanosecondTimestamp } from './timestamps.ts';

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
 * the order of the spec (section 2.3). Or every problem, each with its field.
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
