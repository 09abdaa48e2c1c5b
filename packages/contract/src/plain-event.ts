import { isEventType } from './event-types.ts';
import type { PublishedEvent } from './events.ts';
import { idTimeMs } from './ids.ts';
import { integerIdFromText, isIntegerId } from './text-schemas.ts';
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
