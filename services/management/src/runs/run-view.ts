import type { StoredRunStatus } from '@runhook/contract';
import type { TriggerOptions } from './run-trigger.ts';

/**
 * A run as it is on record. Events are made of it, and responses by `runResponse`. Ids are integers, times ISO 8601 UTC
 * with microseconds and `Z`.
 */
export interface RunView {
  id: number;
  account_id: number;
  job_id: number;
  job_name: string;
  project_id: number;
  project_name: string;
  environment_id: number;
  environment_name: string;
  /** Null until the run starts. */
  engine_version: string | null;
  status: StoredRunStatus;
  status_message: string | null;
  reason: string | null;
  created_at: string;
  /** Null until the run starts. */
  started_at: string | null;
  finished_at: string | null;
  errored_at: string | null;
  artifacts_ingested_at: string | null;
  /** Null for a run that was only reported. */
  trigger: TriggerOptions | null;
  /** The run that this run repeats. */
  retry_of: number | null;
}
