// SQL by hand: the hot path; each report of a job runner locks, changes and reads its run.
import { RUN_STATUS_CODES, type RunStatus } from '@runhook/contract';
import {
  column,
  type JobView,
  type Queryable,
  queryRows,
  type RowOf,
  type Transaction,
} from '@runhook/database';
import type { RunView } from './routes.ts';

const time = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS ${column}`;

/** What every statement on `runs` selects or returns, for {@link toRunView}. */
const RUN_COLUMNS = `
  runs.id, runs.account_id, runs.job_id, runs.job_name, runs.project_id, runs.project_name, runs.environment_id,
  runs.environment_name, runs.engine_version, runs.status, runs.status_message, runs.reason,
  ${['started_at', 'finished_at', 'errored_at', 'artifacts_ingested_at'].map(time).join(', ')}`;

const RUN = {
  id: column.digits,
  account_id: column.digits,
  job_id: column.digits,
  job_name: column.text,
  project_id: column.digits,
  project_name: column.text,
  environment_id: column.digits,
  environment_name: column.text,
  engine_version: column.text,
  status: (value: unknown): value is RunStatus =>
    typeof value === 'string' && Object.hasOwn(RUN_STATUS_CODES, value),
  status_message: column.orNull(column.text),
  reason: column.orNull(column.text),
  started_at: column.text,
  finished_at: column.orNull(column.text),
  errored_at: column.orNull(column.text),
  artifacts_ingested_at: column.orNull(column.text),
};

type RunRow = RowOf<typeof RUN>;

function toRunView(row: RunRow): RunView {
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

const JOB = {
  id: column.digits,
  account_id: column.digits,
  name: column.text,
  project_id: column.digits,
  project_name: column.text,
  environment_id: column.digits,
  environment_name: column.text,
};

/** The job of a run, within the transaction that starts it. */
export async function findJob(
  transaction: Transaction,
  accountId: number,
  jobId: number,
): Promise<JobView | null> {
  const [row] = await queryRows(
    transaction,
    JOB,
    `SELECT jobs.id, jobs.account_id, jobs.name, project_id, projects.name AS project_name,
       environment_id, environments.name AS environment_name
     FROM jobs JOIN projects ON projects.id = project_id JOIN environments ON environments.id = environment_id
     WHERE jobs.account_id = $1 AND jobs.id = $2`,
    [accountId, jobId],
  );
  if (!row) return null;
  return {
    id: Number(row.id),
    account_id: Number(row.account_id),
    name: row.name,
    project_id: Number(row.project_id),
    project_name: row.project_name,
    environment_id: Number(row.environment_id),
    environment_name: row.environment_name,
  };
}

/** A run at its start. `id` is the runner's own number, or undefined for one that the database draws. */
export interface NewRun {
  id: number | undefined;
  job: JobView;
  engineVersion: string;
  reason: string | null;
  /** ISO 8601 UTC in whole seconds; the column would round a finer one. */
  startedAt: string;
}

const DRAWS_MAX = 100_000;

/** Null when the account has a run of that number already; a drawn number is always a free one. */
export async function insertRun(transaction: Transaction, run: NewRun): Promise<RunView | null> {
  if (run.id !== undefined) return await insertFirstFree(transaction, run, 'SELECT $2::bigint AS id', run.id);
  // Runners may have taken the numbers that come next, perhaps a long row of them: draw more each time.
  for (let draws = 1; ; draws = Math.min(draws * 10, DRAWS_MAX)) {
    const drawn = `SELECT nextval('runs_id_seq') AS id FROM generate_series(1, $2)`;
    const inserted = await insertFirstFree(transaction, run, drawn, draws);
    if (inserted) return inserted;
  }
}

async function insertFirstFree(
  transaction: Transaction,
  { job, engineVersion, reason, startedAt }: NewRun,
  candidates: string,
  candidatesArgument: number,
): Promise<RunView | null> {
  const [row] = await queryRows(
    transaction,
    RUN,
    `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id,
       environment_name, engine_version, reason, started_at, status)
     SELECT $1, candidates.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'Running'
     FROM (${candidates}) AS candidates
     WHERE NOT EXISTS (SELECT FROM runs WHERE account_id = $1 AND id = candidates.id)
     ORDER BY candidates.id LIMIT 1
     ON CONFLICT (account_id, id) DO NOTHING
     RETURNING ${RUN_COLUMNS}`,
    [
      job.account_id,
      candidatesArgument,
      job.id,
      job.name,
      job.project_id,
      job.project_name,
      job.environment_id,
      job.environment_name,
      engineVersion,
      reason,
      startedAt,
    ],
  );
  return row ? toRunView(row) : null;
}

export async function findRun(
  database: Queryable,
  accountId: number,
  runId: number,
  lock: '' | 'FOR UPDATE' = '',
): Promise<RunView | null> {
  const [row] = await queryRows(
    database,
    RUN,
    `SELECT ${RUN_COLUMNS} FROM runs WHERE account_id = $1 AND id = $2 ${lock}`,
    [accountId, runId],
  );
  return row ? toRunView(row) : null;
}

/** Writes what a report can change, and answers the row as it is now. */
export async function updateRun(transaction: Transaction, run: RunView): Promise<RunView> {
  const [row] = await queryRows(
    transaction,
    RUN,
    `UPDATE runs
     SET status = $3, status_message = $4, finished_at = $5, errored_at = $6, artifacts_ingested_at = $7
     WHERE account_id = $1 AND id = $2 RETURNING ${RUN_COLUMNS}`,
    [
      run.account_id,
      run.id,
      run.status,
      run.status_message,
      run.finished_at,
      run.errored_at,
      run.artifacts_ingested_at,
    ],
  );
  if (!row) throw new Error(`run ${run.id} is gone, although it is locked`);
  return toRunView(row);
}

export interface RunFilters {
  jobId?: number | undefined;
  status?: RunStatus | undefined;
}

/** A page of the account's runs, newest first, and how many match. */
export async function listRuns(
  database: Queryable,
  accountId: number,
  filters: RunFilters,
  page: { limit: number; offset: number },
): Promise<{ runs: RunView[]; totalCount: number }> {
  const matching = `FROM runs
    WHERE account_id = $1 AND ($2::bigint IS NULL OR job_id = $2) AND ($3::text IS NULL OR status = $3)`;
  const values = [accountId, filters.jobId ?? null, filters.status ?? null];
  const [rows, [total]] = await Promise.all([
    queryRows(
      database,
      RUN,
      `SELECT ${RUN_COLUMNS} ${matching} ORDER BY created_at DESC, id DESC LIMIT $4 OFFSET $5`,
      [...values, page.limit, page.offset],
    ),
    queryRows(database, { count: column.digits }, `SELECT count(*) ${matching}`, values),
  ]);
  return { runs: rows.map(toRunView), totalCount: Number(total?.count) };
}
