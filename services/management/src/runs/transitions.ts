import {
  createId,
  type EventType,
  type JobRunEvent,
  nanosecondTimestamp,
  type RunDetails,
  type RunStatus,
} from '@runhook/contract';
import type { RunView } from './routes.ts';

/** How a job runner says that a run ended (docs/contract.md#runs-and-jobs). */
export const FINISH_STATUSES = ['success', 'errored', 'cancelled'] as const;

export type FinishStatus = (typeof FINISH_STATUSES)[number];

/** What decides the next transition; null when no run of that number was started. */
export interface RunState {
  status: RunStatus;
  artifactsIngested: boolean;
}

export type RunCall = { call: 'start' } | { call: 'finish'; status: FinishStatus } | { call: 'artifacts' };

/** `events` are sent in that order, with the state they changed to. `unchanged` is a repeat: the first stands. */
export type RunTransition =
  | { kind: 'unchanged' }
  | { kind: 'conflict'; message: string }
  | { kind: 'changed'; status?: RunStatus; artifactsIngested?: true; events: EventType[] };

const FINAL_STATUS: Record<FinishStatus, Exclude<RunStatus, 'Running'>> = {
  success: 'Success',
  errored: 'Errored',
  cancelled: 'Canceled',
};

/**
 * The life of a run. `job.run.errored` goes out at once and `job.run.completed` only once the artifacts are
 * ingested, whichever of finish and artifacts comes first; a cancelled run sends nothing more (docs/contract.md#events).
 */
export function runTransition(state: RunState | null, call: RunCall): RunTransition {
  if (call.call === 'start') {
    return state
      ? { kind: 'unchanged' }
      : { kind: 'changed', status: 'Running', events: ['job.run.started'] };
  }
  if (!state) return { kind: 'conflict', message: 'The run has not been started.' };
  return call.call === 'finish' ? finish(state, FINAL_STATUS[call.status]) : ingestArtifacts(state);
}

function finish(state: RunState, status: Exclude<RunStatus, 'Running'>): RunTransition {
  if (state.status === status) return { kind: 'unchanged' };
  if (state.status !== 'Running') {
    return { kind: 'conflict', message: `The run has ended as ${state.status} and cannot end as ${status}.` };
  }
  const events: EventType[] = status === 'Errored' ? ['job.run.errored'] : [];
  if (state.artifactsIngested && status !== 'Canceled') events.push('job.run.completed');
  return { kind: 'changed', status, events };
}

function ingestArtifacts(state: RunState): RunTransition {
  if (state.artifactsIngested) return { kind: 'unchanged' };
  const completes = state.status === 'Success' || state.status === 'Errored';
  return { kind: 'changed', artifactsIngested: true, events: completes ? ['job.run.completed'] : [] };
}

/** What a text that every payload carries says when the run has none (docs/contract.md#events). */
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
