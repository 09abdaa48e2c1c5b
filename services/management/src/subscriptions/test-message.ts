import {
  createId,
  type EventType,
  type Format,
  formatByName,
  formatOptionProblems,
  idDay,
  isId,
  type JobRunEvent,
  MASK,
  type Problem,
  renderPayload,
  sampleEvent,
  type TestMessageFields,
} from '@runhook/contract';
import { isStoredEventData, type SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { InvalidRequestError } from '../http/errors.ts';
import { NOT_STORED_PROBLEM } from './custom-headers.ts';
import { decryptFormatOptions } from './delivery-options.ts';

/** Format of a test, with the values of its options. */
export interface TestFormat {
  /** Null for the payload of the contract. */
  format: Format | null;
  options: Record<string, string>;
}

interface StoredFormat {
  format: string | null;
  formatOptionsCiphertext: string | null;
}

/**
 * Returns the format of a test: that of the request, else the stored one. Options that the request omits or masks have
 * their stored values, if the format is the stored one. Throws a 400 that names each invalid option.
 * @param stored null for a webhook that is not stored
 */
export function testFormat(
  requested: Pick<TestMessageFields, 'format' | 'format_options'>,
  stored: StoredFormat | null,
  secrets: SecretBox,
): TestFormat {
  const name = requested.format === undefined ? (stored?.format ?? null) : requested.format;
  const hasSameFormat = stored !== null && name === stored.format;
  const storedValues = hasSameFormat ? decryptFormatOptions(stored, secrets) : {};
  const options: Record<string, string> = {};
  const problems: Problem[] = [];
  for (const [option, value] of Object.entries(requested.format_options ?? storedValues)) {
    const used = value === MASK ? storedValues[option] : value;
    const field = `format_options.${option}`;
    if (used === undefined) problems.push({ field, message: `${field} ${NOT_STORED_PROBLEM}` });
    else options[option] = used;
  }
  const format = formatByName(name);
  // A mask that was rejected must not be reported as missing as well.
  if (format !== null && problems.length === 0) problems.push(...formatOptionProblems(format, options));
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return { format: name === null ? null : format, options };
}

/** Returns the event of the id in the account, or a sample of the type. Throws a 400 if there is no such event. */
export async function testEvent(
  prisma: PrismaClient,
  accountId: number,
  {
    event_id: eventId,
    event_type: eventType,
  }: Pick<TestMessageFields, 'event_id'> & { event_type: EventType },
  { format }: TestFormat,
): Promise<JobRunEvent> {
  if (!eventId) {
    const now = new Date();
    const eventIdOfSample = createId('event', now.getTime());
    return sampleEvent(eventType, { accountId, eventId: eventIdOfSample, now, format: format?.name ?? null });
  }
  const event = isId('event', eventId) ? await findEvent(prisma, accountId, eventId) : null;
  if (event !== null) return event;
  const message = 'event_id must be the id of an event of the account that the log still has';
  throw new InvalidRequestError([{ field: 'event_id', message }]);
}

async function findEvent(
  prisma: PrismaClient,
  accountId: number,
  eventId: string,
): Promise<JobRunEvent | null> {
  const day = new Date(idDay('event', eventId));
  const row = await prisma.event.findFirst({ where: { day, id: eventId, accountId } });
  if (row === null || !isStoredEventData(row.data)) return null;
  const { eventType, timestamp, data } = row;
  return { eventId, accountId, timestamp, eventType, data } as unknown as JobRunEvent;
}

interface RenderedMessage {
  body: string;
  contentType: string;
}

/** Renders what an attempt would send. Throws a 400 if the format sends nothing for the event. */
export function renderMessage(
  event: JobRunEvent,
  subscription: { id: string; name: string },
  { format, options }: TestFormat,
  consoleUrl: string | null,
): RenderedMessage {
  const { id, name } = subscription;
  if (format === null) return { body: renderPayload(event, { id, name }), contentType: 'application/json' };
  const rendering = format.render({ event, subscription: { id, name }, consoleUrl, options });
  if (rendering.nothing === undefined) return rendering;
  throw new InvalidRequestError([
    { field: 'event_type', message: `event_type ${event.eventType} is not sent: ${rendering.nothing}` },
  ]);
}
