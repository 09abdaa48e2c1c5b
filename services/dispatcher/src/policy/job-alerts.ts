import type { JobRunEvent } from '@runhook/contract';

/** Last delivered event of a state of a job, in a format whose target tracks jobs. */
export interface JobAlert {
  /** As `Format.jobState` names it. */
  state: string;
  /** Digits. */
  runId: string;
  eventId: string;
  /** End of the run in milliseconds since the epoch. */
  runEndedAtMs: number;
}

/**
 * Returns the reason for not sending an event to a target that tracks jobs, or null: its run has ended before one whose
 * event with another state was delivered, or it would repeat another event of its run. Compares the ends of runs, because
 * the second event of a run may be sent long after the first.
 * @param runEndedAtMs end of the run of the event, in milliseconds since the epoch
 * @param delivered at most one for each state
 */
export function supersededReason(
  { eventId, data }: Pick<JobRunEvent, 'eventId' | 'data'>,
  state: string,
  runEndedAtMs: number,
  delivered: readonly JobAlert[],
): string | null {
  const same = delivered.find((alert) => alert.state === state && alert.runId === data.runId);
  if (same !== undefined && same.eventId !== eventId)
    return `Another event of run ${data.runId} has reported the same to the target.`;
  const later = delivered.find((alert) => alert.state !== state && alert.runEndedAtMs > runEndedAtMs);
  return later === undefined
    ? null
    : `The target has received an event of run ${later.runId} of the job, which ended later.`;
}
