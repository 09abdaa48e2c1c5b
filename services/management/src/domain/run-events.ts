import {
  createId,
  type EventType,
  type JobRunEvent,
  nanosecondTimestamp,
  type RunDetails,
} from '@runhook/contract';
import type { RunView } from './run-view.ts';

/** What a text that every payload carries says when the run has none (spec, section 2.3, `runStatusMessage`). */
const NO_TEXT = 'None';

/**
 * The event that tells of `run` as it is at that event.
 * @param arrivedAtMs when the call that caused it arrived; the event's `timestamp`
 */
export function runEvent(
  eventType: EventType,
  run: RunView,
  arrivedAtMs: number,
  eventId: string = createId('event', arrivedAtMs),
): JobRunEvent {
  const timestamp = nanosecondTimestamp(new Date(arrivedAtMs).toISOString()) as string;
  const identity = { eventId, accountId: run.account_id, timestamp };
  const details = runDetails(run);
  switch (eventType) {
    case 'job.run.started':
      return { ...identity, eventType, data: details };
    case 'job.run.completed':
      return {
        ...identity,
        eventType,
        data: { ...details, runFinishedAt: reached(run.finished_at, run, eventType) },
      };
    case 'job.run.errored':
      return {
        ...identity,
        eventType,
        data: { ...details, runErroredAt: reached(run.errored_at, run, eventType) },
      };
  }
}

function runDetails(run: RunView): RunDetails {
  return {
    jobId: String(run.job_id),
    jobName: run.job_name,
    runId: String(run.id),
    environmentId: String(run.environment_id),
    environmentName: run.environment_name,
    engineVersion: run.engine_version,
    projectName: run.project_name,
    projectId: String(run.project_id),
    runStatus: run.status,
    runStatusCode: run.status_code,
    runStatusMessage: run.status_message ?? NO_TEXT,
    runReason: run.reason ?? NO_TEXT,
    runStartedAt: run.started_at,
  };
}

function reached(time: string | null, run: RunView, eventType: EventType): string {
  if (time === null) throw new TypeError(`run ${run.id} has no time for ${eventType}`);
  return time;
}
