// SQL by hand: this is the hot path, where one statement reads the jobs or the runs of many reports.
import { column, type JobView, type Queryable, queryRows } from '@runhook/database';
import type { RunView } from './run-view.ts';
import { RUN, RUN_COLUMNS, type RunRow, toRunView } from './statements.ts';

/** Rows with the value of `cache_version`, both from one snapshot. */
export interface RowsAtVersion<T> {
  version: string;
  /** Rows by {@link keyOf}; rows that do not exist are missing. */
  found: Map<string, T>;
}

/** Identifies a run or a job. */
export interface AccountScopedId {
  accountId: number;
  id: number;
}

export function keyOf({ accountId, id }: AccountScopedId): string {
  return `${accountId}/${id}`;
}

const JOB_COLUMNS = {
  version: column.digits,
  id: column.orNull(column.digits),
  account_id: column.orNull(column.digits),
  name: column.orNull(column.text),
  project_id: column.orNull(column.digits),
  project_name: column.orNull(column.text),
  environment_id: column.orNull(column.digits),
  environment_name: column.orNull(column.text),
};

// Returns the version even if no job is found.
const JOBS = `
  SELECT v.version, found.*
  FROM cache_version v LEFT JOIN (
    SELECT jobs.id, jobs.account_id, jobs.name, jobs.project_id, projects.name AS project_name, jobs.environment_id,
      environments.name AS environment_name
    FROM unnest($1::bigint[], $2::bigint[]) AS wanted (account_id, id)
    JOIN jobs ON jobs.account_id = wanted.account_id AND jobs.id = wanted.id AND jobs.deleted_at IS NULL
    JOIN projects ON projects.id = jobs.project_id
    JOIN environments ON environments.id = jobs.environment_id
  ) AS found ON true`;

export async function findJobs(
  database: Queryable,
  keys: readonly AccountScopedId[],
): Promise<RowsAtVersion<JobView>> {
  const rows = await queryRows(database, JOB_COLUMNS, JOBS, [
    keys.map(({ accountId }) => accountId),
    keys.map(({ id }) => id),
  ]);
  const found = new Map<string, JobView>();
  for (const { version, ...row } of rows) {
    if (row.id === null) continue;
    const job = {
      id: Number(row.id),
      account_id: Number(row.account_id),
      name: row.name,
      project_id: Number(row.project_id),
      project_name: row.project_name,
      environment_id: Number(row.environment_id),
      environment_name: row.environment_name,
    } as JobView;
    found.set(keyOf({ accountId: job.account_id, id: job.id }), job);
  }
  return { version: versionOf(rows), found };
}

/** Returns the version of rows that one statement has read. */
export function versionOf(rows: readonly { version: string }[]): string {
  const version = rows[0]?.version;
  if (version === undefined) throw new Error('the table cache_version has lost its row');
  return version;
}

const RUN_OR_NONE = {
  version: column.digits,
  ...Object.fromEntries(
    Object.entries(RUN).map(([name, isColumn]) => [name, column.orNull<unknown>(isColumn)]),
  ),
} as { version: typeof column.digits; id: typeof column.digits };

const SELECT_RUNS = `
  SELECT v.version, found.*
  FROM cache_version v LEFT JOIN (
    SELECT ${RUN_COLUMNS}
    FROM unnest($1::bigint[], $2::bigint[]) AS wanted (account_id, id)
    JOIN runs ON runs.account_id = wanted.account_id AND runs.id = wanted.id
  ) AS found ON true`;

export async function findRuns(
  database: Queryable,
  keys: readonly AccountScopedId[],
): Promise<RowsAtVersion<RunView>> {
  const values = [keys.map(({ accountId }) => accountId), keys.map(({ id }) => id)];
  const rows = await queryRows(database, RUN_OR_NONE, SELECT_RUNS, values, 'reported-runs');
  const found = new Map<string, RunView>();
  for (const row of rows) {
    if (row.id === null) continue;
    const run = toRunView(row as unknown as RunRow);
    found.set(keyOf({ accountId: run.account_id, id: run.id }), run);
  }
  return { version: versionOf(rows), found };
}
