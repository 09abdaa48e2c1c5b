// SQL by hand: runs are read with the columns that the hot path uses.
import { integerIdFromText, type StoredRunStatus } from '@runhook/contract';
import { column, type Queryable, queryRows } from '@runhook/database';
import { type TimeRange, timeRangeSql, timestampSql } from '../http/filter-readers.ts';
import type { RunView } from './run-view.ts';
import { RUN, RUN_COLUMNS, toRunView } from './statements.ts';

/** Sort orders of the list of runs. The default is newest first by `created_at`. */
export const RUN_ORDERS = ['id', 'created_at', 'started_at', 'finished_at'] as const;

export interface RunOrder {
  by: (typeof RUN_ORDERS)[number];
  isDescending: boolean;
}

/** Null or omitted filters match all runs. Each list of values must have that of the run. */
export interface RunFilters {
  ids?: readonly (readonly number[] | null)[];
  jobIds?: readonly (number | null)[];
  projectIds?: readonly (readonly number[] | null)[];
  environmentIds?: readonly (readonly number[] | null)[];
  statuses?: readonly (readonly StoredRunStatus[] | null)[];
  /** No run defers to another run, so any id matches none. */
  deferringRunId?: number | null;
  /** Matches a part of the job's name, or the complete id of the run. */
  search?: string | null | undefined;
  /** Earliest start, inclusive, in microseconds since the epoch, as digits. A run that has not started has that of its record. */
  since?: string | null | undefined;
  /** Latest start, exclusive, in the same format as `since`. */
  until?: string | null | undefined;
  createdAt?: TimeRange | null;
  finishedAt?: TimeRange | null;
}

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
  filters: RunFilters,
  page: { limit: number; offset: number; order?: RunOrder | null },
): Promise<{ runs: RunView[]; totalCount: number }> {
  const { conditions, values } = runConditions(accountId, filters);
  let source = `runs WHERE ${conditions.join(' AND ')}`;
  const { search } = filters;
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

function runConditions(accountId: number, filters: RunFilters): { conditions: string[]; values: unknown[] } {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const conditions = [`account_id = ${parameter(accountId)}`];
  const addLists = (name: string, type: string, lists: readonly (readonly unknown[] | null)[] = []) => {
    for (const list of lists)
      if (list !== null) conditions.push(`${name} = ANY(${parameter(list)}::${type}[])`);
  };
  addLists('id', 'bigint', filters.ids);
  for (const jobId of filters.jobIds ?? [])
    if (jobId !== null) conditions.push(`job_id = ${parameter(jobId)}`);
  addLists('project_id', 'bigint', filters.projectIds);
  addLists('environment_id', 'bigint', filters.environmentIds);
  addLists('status', 'text', filters.statuses);
  const { deferringRunId, since, until, createdAt, finishedAt } = filters;
  if (deferringRunId !== undefined && deferringRunId !== null) conditions.push('false');
  const start = 'coalesce(started_at, created_at)';
  if (since !== undefined && since !== null) conditions.push(`${start} >= ${timestampSql(parameter(since))}`);
  if (until !== undefined && until !== null) conditions.push(`${start} < ${timestampSql(parameter(until))}`);
  if (createdAt) conditions.push(...timeRangeSql('created_at', createdAt, parameter));
  if (finishedAt) conditions.push(...timeRangeSql('finished_at', finishedAt, parameter));
  return { conditions, values };
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
