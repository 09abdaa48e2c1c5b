// Uses no Node.js API, so that the console can import it.
import { EVENT_TYPE_TABLE, type RunStatus } from './event-types.ts';
import type { JobRunEvent } from './events.ts';

/** Returns the run status that the event describes. `runStatus` itself is free text of the publisher. */
export function reportedStatus({ eventType, data }: JobRunEvent): RunStatus {
  const { statuses } = EVENT_TYPE_TABLE[eventType];
  return statuses.find((status) => status === data.runStatus) ?? statuses[0];
}

/** Returns the time at which the run ended, as ISO 8601, as reported; null for a run that has not. */
export function runEndOf({ eventType, data }: JobRunEvent): string | null {
  const { time } = EVENT_TYPE_TABLE[eventType];
  return time === null ? null : ((data as unknown as Record<string, string>)[time] ?? null);
}
