import type { RunStatus } from '@runhook/contract';

/** A run as the runs API answers it (DESIGN, section 7): ids are integers, times ISO 8601 UTC in seconds with `Z`. */
export interface RunView {
  id: number;
  account_id: number;
  job_id: number;
  job_name: string;
  project_id: number;
  project_name: string;
  environment_id: number;
  environment_name: string;
  engine_version: string;
  status: RunStatus;
  status_code: number;
  status_message: string | null;
  reason: string | null;
  started_at: string;
  finished_at: string | null;
  errored_at: string | null;
  artifacts_ingested_at: string | null;
}
