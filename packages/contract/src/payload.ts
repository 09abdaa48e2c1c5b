// Uses no Node.js API, so that the console can render samples.
import { EVENT_TYPE_TABLE, type EventType, type RunDetails, type RunTime } from './event-types.ts';
import type { EventIdentity, JobRunEvent } from './events.ts';
import { wellFormedText } from './text.ts';

/** @param timeOf called if the event type has a timestamp in addition to those of `run` */
export function createEvent(
  eventType: EventType,
  identity: EventIdentity,
  run: RunDetails,
  timeOf: (time: RunTime) => string,
): JobRunEvent {
  const { time } = EVENT_TYPE_TABLE[eventType];
  const data = time === null ? run : { ...run, [time]: timeOf(time) };
  return { ...identity, eventType, data } as JobRunEvent;
}

/**
 * Renders the exact text of a delivery's body: keys in the order of docs/contract.md#events, no white space. The text
 * is signed and sent unchanged; the same event and subscription always give the same bytes. It is I-JSON (RFC 7493)
 * even if a row of an older release contains invalid text.
 */
export function renderPayload(event: JobRunEvent, subscription: { id: string; name: string }): string {
  return JSON.stringify({
    accountId: event.accountId,
    webhooksID: subscription.id,
    eventId: event.eventId,
    timestamp: event.timestamp,
    eventType: event.eventType,
    webhookName: wellFormedText(subscription.name),
    data: orderedData(event),
  });
}

/**
 * Returns `data` with its keys in the order of docs/contract.md#events, its free text well-formed, and only the fields
 * of the event's type. The fields are listed one by one because a loop makes the rendering some 15 % slower; the type
 * ensures that none is missing.
 */
export function orderedData(event: Pick<JobRunEvent, 'eventType' | 'data'>): JobRunEvent['data'] {
  const data: RunDetails & Record<string, string | number> = event.data;
  const ordered: RunDetails & Record<string, string | number> = {
    jobId: data.jobId,
    jobName: wellFormedText(data.jobName),
    runId: data.runId,
    environmentId: data.environmentId,
    environmentName: wellFormedText(data.environmentName),
    engineVersion: wellFormedText(data.engineVersion),
    projectName: wellFormedText(data.projectName),
    projectId: data.projectId,
    runStatus: wellFormedText(data.runStatus),
    runStatusCode: data.runStatusCode,
    runStatusMessage: wellFormedText(data.runStatusMessage),
    runReason: wellFormedText(data.runReason),
    runStartedAt: data.runStartedAt,
  };
  const { time } = EVENT_TYPE_TABLE[event.eventType];
  if (time !== null) ordered[time] = data[time] as string;
  return ordered;
}
