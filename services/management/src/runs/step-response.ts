import { createHash } from 'node:crypto';
import { RUN_STATUSES, type RunStatusCode, type StoredRunStatus } from '@runhook/contract';
import { durationText, humanDuration, secondsBetween } from './durations.ts';

/** A step as it is on record. Times are ISO 8601 UTC with microseconds and `Z`. */
export interface StepView {
  accountId: number;
  runId: number;
  index: number;
  name: string;
  status: StoredRunStatus;
  startedAt: string | null;
  finishedAt: string | null;
  createdAt: string;
  updatedAt: string;
  /** Sizes of the texts in bytes of UTF-8. */
  logsBytes: number;
  debugLogsBytes: number;
  /** Null for a step without the text, undefined if it was not requested. */
  logs?: string | null;
  debugLogs?: string | null;
}

/** A step of a run in responses (docs/contract.md#run-steps), as clients of this API family read it. */
export interface RunStepResponse {
  id: number;
  run_id: number;
  account_id: number;
  index: number;
  name: string;
  status: RunStatusCode;
  status_humanized: string;
  started_at: string | null;
  finished_at: string | null;
  /** `HH:MM:SS`, up to now while the step is in progress. */
  duration: string;
  duration_humanized: string;
  created_at: string;
  updated_at: string;
  logs_bytes: number;
  debug_logs_bytes: number;
  /** Missing unless requested. */
  logs?: string | null;
  debug_logs?: string | null;
}

export function stepResponse(step: StepView, nowMs: number = Date.now()): RunStepResponse {
  const { code, humanized } = RUN_STATUSES[step.status];
  const seconds = durationSeconds(step, nowMs);
  return {
    id: stepId(step),
    run_id: step.runId,
    account_id: step.accountId,
    index: step.index,
    name: step.name,
    status: code,
    status_humanized: humanized,
    started_at: step.startedAt,
    finished_at: step.finishedAt,
    duration: durationText(seconds),
    duration_humanized: humanDuration(seconds),
    created_at: step.createdAt,
    updated_at: step.updatedAt,
    logs_bytes: step.logsBytes,
    debug_logs_bytes: step.debugLogsBytes,
    ...(step.logs !== undefined && { logs: step.logs }),
    ...(step.debugLogs !== undefined && { debug_logs: step.debugLogs }),
  };
}

const ID_BYTES = 6;

/** Returns the id that clients read: the same for each version of a step, and exact as a number. */
function stepId({ accountId, runId, index }: StepView): number {
  const digest = createHash('sha256').update(`${accountId}/${runId}/${index}`).digest();
  return digest.readUIntBE(0, ID_BYTES) + 1;
}

/** A step that has not ended lasts until now only while it is in progress. */
function durationSeconds({ status, startedAt, finishedAt }: StepView, nowMs: number): number {
  if (startedAt === null) return 0;
  if (finishedAt === null && status !== 'Running') return 0;
  return secondsBetween(Date.parse(startedAt), finishedAt === null ? nowMs : Date.parse(finishedAt));
}
