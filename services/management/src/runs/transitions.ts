import {
  createEvent,
  createId,
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  type JobRunEvent,
  nanosecondTimestamp,
  RUN_TIMES,
  type RunDetails,
  type RunStatus,
} from '@runhook/contract';
import type { RunView } from './routes.ts';

/** Statuses with which a job runner may finish a run (docs/contract.md#runs-and-jobs). */
export const FINISH_STATUSES = ['success', 'errored', 'cancelled'] as const;

export type FinishStatus = (typeof FINISH_STATUSES)[number];

/** The fields of a run that determine its next transition. */
export interface RunState {
  status: RunStatus;
  /** False while the run is running, and after a published `job.run.errored`, which has no finish time. */
  hasFinishTime: boolean;
  hasArtifacts: boolean;
}

export type RunCall = { call: 'start' } | { call: 'finish'; status: FinishStatus } | { call: 'artifacts' };

/** `events` are sent in that order, with the state after the transition. `unchanged` is a repeat without effect. */
export type RunTransition =
  | { kind: 'unchanged' }
  | { kind: 'conflict'; message: string }
  | { kind: 'changed'; state: RunState; events: EventType[] };

const FINAL_STATUS: Record<FinishStatus, Exclude<RunStatus, 'Running'>> = {
  success: 'Success',
  errored: 'Errored',
  cancelled: 'Canceled',
};

/**
 * Returns the transition of a run and the events to send (docs/contract.md#runs-and-jobs). Finish and artifacts arrive
 * in either order. A report of a state that a published event has set sends no event. @param state null for no run
 */
export function transitionRun(state: RunState | null, call: RunCall): RunTransition {
  if (call.call === 'start') {
    if (state) return { kind: 'unchanged' };
    return changeTo(null, { status: 'Running', hasFinishTime: false, hasArtifacts: false });
  }
  if (!state) return { kind: 'conflict', message: 'The run has not been started.' };
  return call.call === 'finish' ? finish(state, FINAL_STATUS[call.status]) : ingestArtifacts(state);
}

function finish(state: RunState, status: Exclude<RunStatus, 'Running'>): RunTransition {
  if (state.status === status && state.hasFinishTime) return { kind: 'unchanged' };
  if (state.status !== 'Running' && state.status !== status) {
    return { kind: 'conflict', message: `The run has ended as ${state.status} and cannot end as ${status}.` };
  }
  return changeTo(state, { ...state, status, hasFinishTime: true });
}

/** Uses the time of the error as the finish time of a run that has ended without a known finish. */
function ingestArtifacts(state: RunState): RunTransition {
  const hasFinishTime = state.status !== 'Running';
  if (state.hasArtifacts && state.hasFinishTime === hasFinishTime) return { kind: 'unchanged' };
  return changeTo(state, { ...state, hasFinishTime, hasArtifacts: true });
}

function changeTo(previous: RunState | null, state: RunState): RunTransition {
  return { kind: 'changed', state, events: eventsOf(previous, state) };
}

/** Types of events in the order in which a run sends them: those that wait for the artifacts come last. */
const ORDERED_TYPES = EVENT_TYPES.toSorted(
  (a, b) => Number(waitsForArtifacts(a)) - Number(waitsForArtifacts(b)),
);

function waitsForArtifacts(eventType: EventType): boolean {
  return EVENT_TYPE_TABLE[eventType].afterArtifacts;
}

/** Returns the types of events whose conditions the run meets after the transition but did not meet before. */
function eventsOf(previous: RunState | null, current: RunState): EventType[] {
  const isReached = (eventType: EventType, { status, hasFinishTime, hasArtifacts }: RunState) =>
    EVENT_TYPE_TABLE[eventType].statuses.includes(status) &&
    (!waitsForArtifacts(eventType) || (hasFinishTime && hasArtifacts));
  return ORDERED_TYPES.filter((type) => isReached(type, current) && !(previous && isReached(type, previous)));
}

/** Text of `runStatusMessage` and `runReason` for a run without one (docs/contract.md#events). */
const NO_TEXT = 'None';

/**
 * Returns the event for `run` in its current state.
 * @param arrivedAtMs arrival of the call that caused the event; the event's `timestamp`
 */
export function runEvent(
  eventType: EventType,
  run: RunView,
  arrivedAtMs: number,
  eventId: string = createId('event', arrivedAtMs),
): JobRunEvent {
  const timestamp = nanosecondTimestamp(new Date(arrivedAtMs).toISOString()) as string;
  const identity = { eventId, accountId: run.account_id, timestamp };
  return createEvent(eventType, identity, runDetails(run), (time) =>
    requireTime(run[RUN_TIMES[time].runField], run, eventType),
  );
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

function requireTime(time: string | null, run: RunView, eventType: EventType): string {
  if (time === null) throw new TypeError(`run ${run.id} has no time for ${eventType}`);
  return time;
}
