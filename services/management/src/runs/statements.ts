// SQL by hand: runs are read with the columns that the hot path uses.
import { isStoredRunStatus } from '@runhook/contract';
import { column, type Queryable, queryRows, type RowOf } from '@runhook/database';
import type { TriggerOptions } from './run-trigger.ts';
import type { RunView } from './run-view.ts';

/** Returns SQL for a time in the format of a {@link RunView}, under the name of the column. */
export const timeSql = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS ${column}`;

const TIMES = ['created_at', 'started_at', 'finished_at', 'errored_at', 'artifacts_ingested_at'];

/** Columns that every statement on `runs` selects or returns, for {@link toRunView}. */
export const RUN_COLUMNS = `
  runs.id, runs.account_id, runs.job_id, runs.job_name, runs.project_id, runs.project_name, runs.environment_id,
  runs.environment_name, runs.engine_version, runs.status, runs.status_message, runs.reason,
  runs.trigger, runs.retry_of, ${TIMES.map(timeSql).join(', ')}`;

export const RUN = {
  id: column.digits,
  account_id: column.digits,
  job_id: column.digits,
  job_name: column.text,
  project_id: column.digits,
  project_name: column.text,
  environment_id: column.digits,
  environment_name: column.text,
  engine_version: column.orNull(column.text),
  status: isStoredRunStatus,
  status_message: column.orNull(column.text),
  reason: column.orNull(column.text),
  created_at: column.text,
  started_at: column.orNull(column.text),
  finished_at: column.orNull(column.text),
  errored_at: column.orNull(column.text),
  artifacts_ingested_at: column.orNull(column.text),
  trigger: column.orNull(column.object),
  retry_of: column.orNull(column.digits),
};

export type RunRow = RowOf<typeof RUN>;

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
    status_message: row.status_message,
    reason: row.reason,
    created_at: row.created_at,
    started_at: row.started_at,
    finished_at: row.finished_at,
    errored_at: row.errored_at,
    artifacts_ingested_at: row.artifacts_ingested_at,
    trigger: row.trigger as TriggerOptions | null,
    retry_of: row.retry_of === null ? null : Number(row.retry_of),
  };
}

export async function findRun(
  database: Queryable,
  accountId: number,
  runId: number,
): Promise<RunView | null> {
  const text = `SELECT ${RUN_COLUMNS} FROM runs WHERE account_id = $1 AND id = $2`;
  const [row] = await queryRows(database, RUN, text, [accountId, runId]);
  return row ? toRunView(row) : null;
}
