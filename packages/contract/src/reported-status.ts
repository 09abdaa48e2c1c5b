// Uses no Node.js API, so that the console can import it.
import { EVENT_TYPE_TABLE, RUN_STATUS_CODES, type RunStatus } from './event-types.ts';
import type { JobRunEvent } from './events.ts';

/**
 * Returns the run status that the event describes, one of its type. `runStatus` is free text of the publisher, so
 * `runStatusCode` decides if it is none of the statuses.
 */
export function reportedStatus({ eventType, data }: JobRunEvent): RunStatus {
  const { statuses } = EVENT_TYPE_TABLE[eventType];
  return (
    statuses.find((status) => status === data.runStatus) ??
    statuses.find((status) => RUN_STATUS_CODES[status] === data.runStatusCode) ??
    statuses[0]
  );
}

/**
 * Returns the run status for messages: by `runStatusCode`, which filters match as well, so that a webhook
 * with a filter for failures announces no success. A run that has ended may have been cancelled.
 */
export function notifiedStatus(event: JobRunEvent): RunStatus {
  const { statuses, time } = EVENT_TYPE_TABLE[event.eventType];
  const possible: readonly RunStatus[] = time === null ? statuses : [...statuses, 'Canceled'];
  const byCode = possible.find((status) => RUN_STATUS_CODES[status] === event.data.runStatusCode);
  return byCode ?? reportedStatus(event);
}

/** Returns the time at which the run ended, as ISO 8601, as reported; null for a run that has not. */
export function runEndOf({ eventType, data }: JobRunEvent): string | null {
  const { time } = EVENT_TYPE_TABLE[eventType];
  return time === null ? null : ((data as unknown as Record<string, string>)[time] ?? null);
}
