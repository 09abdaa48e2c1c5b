// SQL by hand: runs are read with the columns that the hot path uses.
import { integerIdFromText, isStoredRunStatus, type StoredRunStatus } from '@runhook/contract';
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

/** Returns the newest run of a job, of the account's newest runs; null without one. */
export async function findLatestRun(
  database: Queryable,
  accountId: number,
  jobId: number,
): Promise<RunView | null> {
  const text = `
    SELECT ${RUN_COLUMNS} FROM (
      SELECT * FROM runs WHERE account_id = $1 ${NEWEST_FIRST} LIMIT ${RUNS_SEARCHED_MAX}) AS runs
    WHERE runs.job_id = $2 ${NEWEST_FIRST} LIMIT 1`;
  const [row] = await queryRows(database, RUN, text, [accountId, jobId]);
  return row ? toRunView(row) : null;
}

/** Sort orders of the list of runs. The default is newest first by `created_at`. */
export const RUN_ORDERS = ['id', 'created_at', 'started_at', 'finished_at'] as const;

export interface RunOrder {
  by: (typeof RUN_ORDERS)[number];
  isDescending: boolean;
}

/** Null or omitted filters match all runs. */
export interface RunFilters {
  /** The job of the run must have each of these ids. */
  jobIds?: readonly (number | null)[];
  projectId?: number | null | undefined;
  environmentId?: number | null | undefined;
  status?: StoredRunStatus | null | undefined;
  /** Matches a part of the job's name, or the complete id of the run. */
  search?: string | null | undefined;
  /** Earliest start, inclusive, in microseconds since the epoch, as digits. */
  since?: string | null | undefined;
  /** Latest start, exclusive, in the same format as `since`. */
  until?: string | null | undefined;
}

const timestampSql = (parameter: string) =>
  `timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond'`;

/** Maximum count of matching runs, as in the log of deliveries. */
export const RUNS_COUNT_MAX = 1_000_000;
/**
 * Maximum number of newest runs that a search by name, or a sort order without an index, reads: no index finds a part
 * of a name or sorts by the end of a run.
 */
export const RUNS_SEARCHED_MAX = 200_000;

const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC';

/** Returns a page of runs, newest first by default, and the number of matches up to {@link RUNS_COUNT_MAX}. */
export async function listRuns(
  database: Queryable,
  accountId: number,
  { jobIds = [], projectId, environmentId, status, search, since, until }: RunFilters,
  page: { limit: number; offset: number; order?: RunOrder | null },
): Promise<{ runs: RunView[]; totalCount: number }> {
  const values: unknown[] = [accountId];
  const conditions = ['account_id = $1'];
  const addCondition = (value: unknown, sql: (parameter: string) => string) => {
    if (value === undefined || value === null) return;
    values.push(value);
    conditions.push(sql(`$${values.length}`));
  };
  for (const jobId of jobIds) addCondition(jobId, (parameter) => `job_id = ${parameter}`);
  addCondition(projectId, (parameter) => `project_id = ${parameter}`);
  addCondition(environmentId, (parameter) => `environment_id = ${parameter}`);
  addCondition(status, (parameter) => `status = ${parameter}`);
  addCondition(since, (parameter) => `started_at >= ${timestampSql(parameter)}`);
  addCondition(until, (parameter) => `started_at < ${timestampSql(parameter)}`);
  let source = `runs WHERE ${conditions.join(' AND ')}`;
  if (search !== undefined && search !== null) {
    const name = `$${values.push(`%${search.replace(/[\\%_]/g, '\\$&')}%`)}`;
    const id = `$${values.push(integerIdFromText(search))}::bigint`;
    source = `(
      (SELECT * FROM (SELECT * FROM ${source} ${NEWEST_FIRST} LIMIT ${RUNS_SEARCHED_MAX}) newest
       WHERE job_name ILIKE ${name} AND id IS DISTINCT FROM ${id})
      UNION ALL SELECT * FROM ${source} AND id = ${id}) AS runs`;
  }
  // One after the other: concurrent scans of many runs would take two cores of the server from other accounts.
  const rows = await queryRows(
    database,
    RUN,
    `SELECT ${RUN_COLUMNS} FROM ${orderedSql(source, page.order ?? null)}
     LIMIT $${values.length + 1} OFFSET $${values.length + 2}`,
    [...values, page.limit, page.offset],
  );
  const [total] = await queryRows(
    database,
    { count: column.digits },
    `SELECT count(*) FROM (SELECT FROM ${source} LIMIT ${RUNS_COUNT_MAX}) matching`,
    values,
  );
  return { runs: rows.map(toRunView), totalCount: Number(total?.count) };
}

/** @param source the runs to sort, in SQL */
function orderedSql(source: string, order: RunOrder | null): string {
  if (order === null) return `${source} ${NEWEST_FIRST}`;
  const { by, isDescending } = order;
  const direction = isDescending ? 'DESC' : 'ASC';
  if (by === 'id') return `${source} ORDER BY id ${direction}`;
  if (by === 'created_at') return `${source} ORDER BY created_at ${direction}, id ${direction}`;
  return `(SELECT * FROM ${source} ${NEWEST_FIRST} LIMIT ${RUNS_SEARCHED_MAX}) AS runs
    ORDER BY runs.${by} ${direction} NULLS LAST, id ${direction}`;
}
