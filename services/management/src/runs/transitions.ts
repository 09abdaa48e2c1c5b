import {
  createEvent,
  createId,
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  isFinalRunStatus,
  type JobRunEvent,
  nanosecondTimestamp,
  RUN_STATUS_CODES,
  RUN_TIMES,
  type RunDetails,
  type RunStatus,
  type StoredRunStatus,
} from '@runhook/contract';
import type { RunView } from './run-view.ts';

/** Statuses with which a job runner may finish a run (docs/contract.md#runs-and-jobs). */
export const FINISH_STATUSES = ['success', 'errored', 'cancelled'] as const;

export type FinishStatus = (typeof FINISH_STATUSES)[number];

/** The fields of a run that determine its next transition. */
export interface RunState {
  status: StoredRunStatus;
  /** False while the run is running, and after a published `job.run.errored`, which has no finish time. */
  hasFinishTime: boolean;
  hasArtifacts: boolean;
}

/**
 * `start` reports a run that may be new, `begin` the start of a run that was triggered. A claim, which changes runs by a
 * separate statement, is in claims.ts.
 */
export type RunCall =
  | { call: 'trigger' | 'start' | 'begin' | 'artifacts' | 'cancel' }
  | { call: 'finish'; status: FinishStatus };

/** `hasEnded`: the run has ended with another status than the call reports. */
export interface RunConflict {
  kind: 'conflict';
  message: string;
  hasEnded: boolean;
}

/** `events` are sent in that order, with the state after the transition. `unchanged` is a repeat without effect. */
export type RunTransition =
  | { kind: 'unchanged' }
  | RunConflict
  | { kind: 'changed'; state: RunState; events: EventType[] };

const FINAL_STATUS: Record<FinishStatus, Exclude<RunStatus, 'Running'>> = {
  success: 'Success',
  errored: 'Errored',
  cancelled: 'Canceled',
};

const QUEUED: RunState = { status: 'Queued', hasFinishTime: false, hasArtifacts: false };
const RUNNING: RunState = { status: 'Running', hasFinishTime: false, hasArtifacts: false };

/** Whether a run is triggered and no runner has started it. */
export function isUnstarted(status: StoredRunStatus): boolean {
  return status === 'Queued' || status === 'Starting';
}

/**
 * Returns the transition of a run and the events to send (docs/contract.md#triggered-runs). Finish and artifacts arrive
 * in either order. A report of a state that a published event has set sends no event. @param state null for no run
 */
export function transitionRun(state: RunState | null, call: RunCall): RunTransition {
  if (state === null) {
    if (call.call === 'trigger') return changeTo(null, QUEUED);
    return call.call === 'start' ? changeTo(null, RUNNING) : NOT_STARTED;
  }
  switch (call.call) {
    case 'trigger':
      return { kind: 'unchanged' };
    case 'start':
      return isUnstarted(state.status) ? changeTo(state, RUNNING) : { kind: 'unchanged' };
    case 'begin':
      return begin(state);
    case 'cancel':
      return isFinalRunStatus(state.status)
        ? { kind: 'unchanged' }
        : changeTo(state, { ...state, status: 'Canceled', hasFinishTime: true });
    case 'finish':
      return isUnstarted(state.status) ? NOT_STARTED : finish(state, FINAL_STATUS[call.status]);
    case 'artifacts':
      return isUnstarted(state.status) ? NOT_STARTED : ingestArtifacts(state);
  }
}

const NOT_STARTED: RunTransition = {
  kind: 'conflict',
  message: 'The run has not been started.',
  hasEnded: false,
};

/** A second start, as by another runner after the lease of the first one, sends nothing. */
function begin(state: RunState): RunTransition {
  if (isUnstarted(state.status)) return changeTo(state, RUNNING);
  if (state.status === 'Running') return { kind: 'unchanged' };
  return {
    kind: 'conflict',
    message: `The run has ended as ${state.status} and cannot start.`,
    hasEnded: true,
  };
}

function finish(state: RunState, status: Exclude<RunStatus, 'Running'>): RunTransition {
  if (state.status === status && state.hasFinishTime) return { kind: 'unchanged' };
  if (isFinalRunStatus(state.status) && state.status !== status) {
    const message = `The run has ended as ${state.status} and cannot end as ${status}.`;
    return { kind: 'conflict', message, hasEnded: true };
  }
  return changeTo(state, { ...state, status, hasFinishTime: true });
}

/** Uses the time of the error as the finish time of a run that has ended without a known finish. */
function ingestArtifacts(state: RunState): RunTransition {
  const hasFinishTime = isFinalRunStatus(state.status);
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
    EVENT_TYPE_TABLE[eventType].statuses.some((reached) => reached === status) &&
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
  return createEvent(eventType, identity, runDetails(run, eventType), (time) =>
    payloadTime(requireReported(run[RUN_TIMES[time].runField], run, eventType)),
  );
}

function runDetails(run: RunView, eventType: EventType): RunDetails {
  const runStatus = requireReported(isPayloadStatus(run.status) ? run.status : null, run, eventType);
  return {
    jobId: String(run.job_id),
    jobName: run.job_name,
    runId: String(run.id),
    environmentId: String(run.environment_id),
    environmentName: run.environment_name,
    engineVersion: requireReported(run.engine_version, run, eventType),
    projectName: run.project_name,
    projectId: String(run.project_id),
    runStatus,
    runStatusCode: RUN_STATUS_CODES[runStatus],
    runStatusMessage: run.status_message ?? NO_TEXT,
    runReason: run.reason ?? NO_TEXT,
    runStartedAt: payloadTime(requireReported(run.started_at, run, eventType)),
  };
}

/** A queued or starting run sends no events. */
function isPayloadStatus(status: RunView['status']): status is RunStatus {
  return Object.hasOwn(RUN_STATUS_CODES, status);
}

/** Truncates fractions of a second instead of rounding, since a run must not start in the future. */
function payloadTime(time: string): string {
  return `${time.slice(0, 19)}Z`;
}

function requireReported<T>(value: T | null, run: RunView, eventType: EventType): T {
  if (value === null) throw new TypeError(`run ${run.id} lacks a value for ${eventType}`);
  return value;
}
