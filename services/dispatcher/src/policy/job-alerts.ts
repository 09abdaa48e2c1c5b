import type { JobRunEvent } from '@runhook/contract';

/** State of a job that was delivered last in a format whose target tracks jobs. */
export interface JobAlert {
  /** As `Format.jobState` names it. */
  state: string;
  /** Digits. */
  runId: string;
  eventId: string;
  /** RFC 3339 with nine fractional digits. */
  eventTimestamp: string;
}

/**
 * Returns the reason for not sending an event to a target that tracks jobs, or null: it would undo a later event of its
 * job, or repeat another event of its run.
 * @param last null if nothing was delivered
 */
export function supersededReason(event: JobRunEvent, state: string, last: JobAlert | null): string | null {
  if (last === null || last.eventId === event.eventId) return null;
  if (last.state === state)
    return last.runId === event.data.runId
      ? `Another event of run ${last.runId} has reported the same to the target.`
      : null;
  return last.eventTimestamp > event.timestamp
    ? `The target has received a later event of the job, of run ${last.runId}.`
    : null;
}
