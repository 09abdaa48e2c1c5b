import { RUN_STATUS_CODES, type RunStatus } from '@runhook/contract';
import type { RunView } from '../domain/run-view.ts';

const time = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS ${column}`;

/** What every statement on `runs` selects or returns, for {@link toRunView}. */
export const RUN_COLUMNS = `
  runs.id, runs.account_id, runs.job_id, runs.job_name, runs.project_id, runs.project_name, runs.environment_id,
  runs.environment_name, runs.engine_version, runs.status, runs.status_message, runs.reason,
  ${['started_at', 'finished_at', 'errored_at', 'artifacts_ingested_at'].map(time).join(', ')}`;

/** Ids come as text: they are bigint. */
export interface RunRow {
  id: string;
  account_id: string;
  job_id: string;
  job_name: string;
  project_id: string;
  project_name: string;
  environment_id: string;
  environment_name: string;
  engine_version: string;
  status: RunStatus;
  status_message: string | null;
  reason: string | null;
  started_at: string;
  finished_at: string | null;
  errored_at: string | null;
  artifacts_ingested_at: string | null;
}

export function toRunView(row: RunRow): RunView {
  return {
    id: Number(row.id),
    account_id: Number(row.account_id),
    job_id: Number(row.job_id),
    job_name: row.job_name,
    project_id: Number(row.project_id),
    project_name: row.project_name,
    environment_id: Number(row.environment_id),
    environment_name: row.environment_name,
    engine_version: row.engine_version,
    status: row.status,
    status_code: RUN_STATUS_CODES[row.status],
    status_message: row.status_message,
    reason: row.reason,
    started_at: row.started_at,
    finished_at: row.finished_at,
    errored_at: row.errored_at,
    artifacts_ingested_at: row.artifacts_ingested_at,
  };
}
