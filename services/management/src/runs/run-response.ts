import { isFinalRunStatus, RUN_STATUSES, type RunStatusCode } from '@runhook/contract';
import { durationText, humanDuration, secondsBetween } from './durations.ts';
import { NO_TRIGGER_OPTIONS, type TriggerOptions } from './run-trigger.ts';
import type { RunView } from './run-view.ts';

/** Names that `include_related` of a run accepts. */
export const RUN_RELATED = [
  'job',
  'trigger',
  'environment',
  'repository',
  'run_steps',
  'debug_logs',
] as const;

export type RunRelatedName = (typeof RUN_RELATED)[number];

/**
 * The objects that `include_related` requests, as their own serialisers return them. Those that are not requested are
 * missing: clients read a null `job` as a job.
 */
export interface RelatedOfRun {
  job?: object;
  environment?: object | null;
  repository?: null;
  run_steps?: readonly object[];
}

type Options = {
  [Option in keyof Required<Omit<TriggerOptions, 'cause'>>]: Required<TriggerOptions>[Option] | null;
};

export interface TriggerResponse extends Options {
  id: number;
  job_id: number;
  job_definition_id: number;
  cause: string;
  cause_category: 'api' | 'other';
  created_at: string;
}

/**
 * A run in responses (docs/contract.md#runs-and-jobs), as clients of this API family read it. Times are ISO 8601 UTC
 * with microseconds and `Z`; durations are `HH:MM:SS`, up to now while the run is in progress.
 */
export interface RunResponse extends RelatedOfRun {
  id: number;
  account_id: number;
  job_id: number;
  /** The job's id under the name that clients of this API family expect. */
  job_definition_id: number;
  job_name: string;
  project_id: number;
  project_name: string;
  environment_id: number;
  environment_name: string;
  engine_version: string | null;
  /** The version of the engine under the name that clients of this API family expect. */
  dbt_version: string | null;
  status: RunStatusCode;
  /** The same number, as the first releases named it. */
  status_code: RunStatusCode;
  status_humanized: string;
  status_message: string | null;
  is_success: boolean;
  is_error: boolean;
  is_cancelled: boolean;
  is_complete: boolean;
  is_running: boolean;
  in_progress: boolean;
  reason: string | null;
  git_sha: string | null;
  git_branch: string | null;
  created_at: string;
  updated_at: string;
  should_start_at: string;
  dequeued_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  errored_at: string | null;
  artifacts_ingested_at: string | null;
  artifacts_saved: boolean;
  has_docs_generated: boolean;
  has_sources_generated: boolean;
  duration: string;
  duration_humanized: string;
  queued_duration: string;
  queued_duration_humanized: string;
  run_duration: string;
  run_duration_humanized: string;
  /** The page of the run in the console. */
  href: string;
  trigger_id: number;
  trigger: TriggerResponse;
  /** The run that this run repeats. */
  retry_of: number | null;
  deferring_run_id: null;
}

/**
 * Returns the representation of a run, the same in every response of the API.
 * @param options.baseUrl scheme and host of links, without a slash at the end
 */
export function runResponse(
  run: RunView,
  {
    baseUrl,
    related,
    nowMs = Date.now(),
  }: { baseUrl: string; related?: RelatedOfRun | undefined; nowMs?: number },
): RunResponse {
  const { code, humanized } = RUN_STATUSES[run.status];
  const isComplete = isFinalRunStatus(run.status);
  const hasArtifacts = run.artifacts_ingested_at !== null;
  return {
    id: run.id,
    account_id: run.account_id,
    job_id: run.job_id,
    job_definition_id: run.job_id,
    job_name: run.job_name,
    project_id: run.project_id,
    project_name: run.project_name,
    environment_id: run.environment_id,
    environment_name: run.environment_name,
    engine_version: run.engine_version,
    dbt_version: run.engine_version,
    status: code,
    status_code: code,
    status_humanized: humanized,
    status_message: run.status_message,
    is_success: run.status === 'Success',
    is_error: run.status === 'Errored',
    is_cancelled: run.status === 'Canceled',
    is_complete: isComplete,
    is_running: run.status === 'Running',
    in_progress: !isComplete,
    reason: run.reason,
    git_sha: run.trigger?.git_sha ?? null,
    git_branch: run.trigger?.git_branch ?? null,
    created_at: run.created_at,
    updated_at: latestTime(run),
    should_start_at: run.created_at,
    dequeued_at: run.started_at,
    started_at: run.started_at,
    finished_at: run.finished_at,
    errored_at: run.errored_at,
    artifacts_ingested_at: run.artifacts_ingested_at,
    artifacts_saved: hasArtifacts,
    has_docs_generated: hasArtifacts,
    has_sources_generated: false,
    ...durations(run, isComplete, nowMs),
    href: `${baseUrl}/accounts/${run.account_id}/runs/${run.id}/`,
    trigger_id: run.id,
    trigger: triggerResponse(run),
    retry_of: run.retry_of,
    deferring_run_id: null,
    ...related,
  };
}

/** Reports may arrive in any order, and with times before the run was recorded. */
function latestTime(run: RunView): string {
  const { created_at, started_at, finished_at, errored_at, artifacts_ingested_at } = run;
  return [started_at, finished_at, errored_at, artifacts_ingested_at].reduce<string>(
    (latest, time) => (time !== null && time > latest ? time : latest),
    created_at,
  );
}

function triggerResponse(run: RunView): TriggerResponse {
  return {
    id: run.id,
    job_id: run.job_id,
    job_definition_id: run.job_id,
    cause_category: run.trigger === null ? 'other' : 'api',
    created_at: run.created_at,
    ...NO_TRIGGER_OPTIONS,
    ...run.trigger,
    cause: run.trigger?.cause ?? run.reason ?? '',
  };
}

/** A run that was reported late has a start before its record, so it did not wait. */
function durations(run: RunView, isComplete: boolean, nowMs: number) {
  const endMs =
    run.finished_at !== null
      ? Date.parse(run.finished_at)
      : isComplete
        ? Date.parse(run.errored_at ?? run.created_at)
        : nowMs;
  const startedMs = run.started_at === null ? endMs : Date.parse(run.started_at);
  const queuedSeconds = secondsBetween(Date.parse(run.created_at), startedMs);
  const runSeconds = secondsBetween(startedMs, endMs);
  const seconds = queuedSeconds + runSeconds;
  return {
    duration: durationText(seconds),
    duration_humanized: humanDuration(seconds),
    queued_duration: durationText(queuedSeconds),
    queued_duration_humanized: humanDuration(queuedSeconds),
    run_duration: durationText(runSeconds),
    run_duration_humanized: humanDuration(runSeconds),
  };
}
