// SQL by hand: an upload replaces a file and its models in one transaction, with arrays of rows.
import {
  column,
  inTransaction,
  type Pool,
  type Queryable,
  queryRows,
  type RowOf,
  runStatement,
  type Transaction,
  type UnnestColumns,
  unnestSql,
  unnestValues,
} from '@runhook/database';
import type { ModelResult } from './model-scanner.ts';

/** A run to which files can be uploaded. */
export interface ArtifactRun {
  accountId: number;
  runId: number;
  status: string;
  createdAt: string;
}

/** `step` is 0 for a file that belongs to no step. */
export interface ArtifactFile {
  path: string;
  step: number;
  objectId: string;
  bytes: number;
  /** In lowercase hexadecimal digits. */
  sha256: string;
}

const SELECT_RUN = `
  SELECT status, created_at::text AS created_at FROM runs WHERE account_id = $1 AND id = $2`;

export async function findArtifactRun(
  database: Queryable,
  accountId: number,
  runId: number,
): Promise<ArtifactRun | null> {
  const columns = { status: column.text, created_at: column.text };
  const [row] = await queryRows(database, columns, SELECT_RUN, [accountId, runId], 'find-artifact-run');
  return row ? { accountId, runId, status: row.status, createdAt: row.created_at } : null;
}

/** Newest runs of an account among which the latest success of a job is searched: no index has the job. */
const RUNS_SEARCHED_MAX = 20_000;
const SELECT_LATEST_SUCCESS = `
  SELECT id FROM (
    SELECT id, job_id, status, created_at FROM runs WHERE account_id = $1
    ORDER BY created_at DESC LIMIT ${RUNS_SEARCHED_MAX}) newest
  WHERE job_id = $2 AND status = 'Success' ORDER BY created_at DESC LIMIT 1`;

export async function findLatestSuccess(
  database: Queryable,
  accountId: number,
  jobId: number,
): Promise<number | null> {
  const rows = await queryRows(database, { id: column.digits }, SELECT_LATEST_SUCCESS, [accountId, jobId]);
  return rows[0] === undefined ? null : Number(rows[0].id);
}

/** Bytes that a file counts beyond its content, so that empty files are limited, too. */
const FILE_OVERHEAD_BYTES = 1_024;

const SELECT_RUN_FILES = `
  SELECT count(*)::int AS count FROM artifacts WHERE account_id = $1 AND run_id = $2`;
const SELECT_ACCOUNT_BYTES = `
  SELECT (coalesce(sum(bytes), 0) + ${FILE_OVERHEAD_BYTES} * count(*))::float8 AS bytes
  FROM artifacts WHERE account_id = $1`;

export async function countFilesOfRun(
  database: Queryable,
  accountId: number,
  runId: number,
): Promise<number> {
  const rows = await queryRows(database, { count: column.integer }, SELECT_RUN_FILES, [accountId, runId]);
  return rows[0]?.count ?? 0;
}

/** Returns the bytes of all files of an account. */
export async function sumBytesOfAccount(database: Queryable, accountId: number): Promise<number> {
  const rows = await queryRows(database, { bytes: column.float }, SELECT_ACCOUNT_BYTES, [accountId]);
  return rows[0]?.bytes ?? 0;
}

const SELECT_PATHS = `
  SELECT DISTINCT path COLLATE "C" AS path FROM artifacts
  WHERE account_id = $1 AND run_id = $2 AND ($3::int IS NULL OR step = $3) ORDER BY path`;

/** Returns the paths of the files of a run. @param step null for those of all steps */
export async function listPaths(
  database: Queryable,
  accountId: number,
  runId: number,
  step: number | null,
): Promise<string[]> {
  const rows = await queryRows(database, { path: column.text }, SELECT_PATHS, [accountId, runId, step]);
  return rows.map(({ path }) => path);
}

const FILE_COLUMNS = `path, step, object_id::text AS object_id, bytes, encode(sha256, 'hex') AS sha256`;
const FILE = {
  path: column.text,
  step: column.integer,
  object_id: column.text,
  bytes: column.integer,
  sha256: column.text,
};
// A file without a step belongs to the whole run, so it also stands for a step that has none of that path.
const SELECT_FILE = `
  SELECT ${FILE_COLUMNS} FROM artifacts
  WHERE account_id = $1 AND run_id = $2 AND path = $3 AND ($4::int IS NULL OR step IN ($4, 0))
  ORDER BY CASE WHEN $4::int IS NULL THEN 0 ELSE step END DESC, uploaded_at DESC, step DESC LIMIT 1`;
const SELECT_NEWEST_FILE = `
  SELECT ${FILE_COLUMNS} FROM artifacts WHERE account_id = $1 AND run_id = $2
  ORDER BY uploaded_at DESC LIMIT 1`;

/** Returns the file of a step, or the one uploaded last. @param step null for any step */
export async function findFile(
  database: Queryable,
  { accountId, runId, path, step }: { accountId: number; runId: number; path: string; step: number | null },
): Promise<ArtifactFile | null> {
  const [row] = await queryRows(database, FILE, SELECT_FILE, [accountId, runId, path, step]);
  return row ? toFile(row) : null;
}

/** Returns the file of a run that was uploaded last, whatever its path. */
export async function findNewestFile(
  database: Queryable,
  accountId: number,
  runId: number,
): Promise<ArtifactFile | null> {
  const [row] = await queryRows(database, FILE, SELECT_NEWEST_FILE, [accountId, runId]);
  return row ? toFile(row) : null;
}

function toFile({ object_id: objectId, ...row }: RowOf<typeof FILE>): ArtifactFile {
  return { path: row.path, step: row.step, bytes: row.bytes, sha256: row.sha256, objectId };
}

// By account, because the first upload of a path finds no row to lock, and the quota has none.
const LOCK_ACCOUNT = `SELECT pg_advisory_xact_lock(hashtextextended('runhook.artifacts', $1::bigint))`;
const SELECT_OBJECT = `
  SELECT object_id::text AS object_id FROM artifacts
  WHERE account_id = $1 AND run_id = $2 AND path = $3 AND step = $4`;
const UPSERT_FILE = `
  INSERT INTO artifacts (account_id, run_id, path, step, object_id, bytes, sha256, run_created_at)
  VALUES ($1, $2, $3, $4, $5, $6, decode($7, 'hex'), $8)
  ON CONFLICT (account_id, run_id, path, step) DO UPDATE
  SET object_id = EXCLUDED.object_id, bytes = EXCLUDED.bytes, sha256 = EXCLUDED.sha256, uploaded_at = now()`;
const DELETE_MODELS = `
  DELETE FROM run_models WHERE account_id = $1 AND run_id = $2 AND step = $3 RETURNING position`;
const MODEL_COLUMNS: UnnestColumns<ModelResult> = {
  unique_id: ['text', (model) => model.unique_id],
  name: ['text', (model) => model.name],
  resource_type: ['text', (model) => model.resource_type],
  status: ['text', (model) => model.status],
  execution_time: ['float8', (model) => model.execution_time],
  message: ['text', (model) => model.message],
  thread_id: ['text', (model) => model.thread_id],
};
const MODEL_NAMES = Object.keys(MODEL_COLUMNS).join(', ');
const INSERT_MODELS = `
  INSERT INTO run_models (account_id, run_id, step, position, run_created_at, ${MODEL_NAMES})
  SELECT $1::bigint, $2::bigint, $3::int, ordinal::int, $4::timestamptz, ${MODEL_NAMES}
  FROM ${unnestSql(MODEL_COLUMNS, 5, 'model', 'ordinal')}`;

/**
 * Commits an uploaded file in place of the previous one of its path and step. The commits of an account run one at a time.
 * @param models of the file; null for a file without any, undefined if models are not read from it
 * @param begin the first statements of the transaction, whose error rejects the file
 * @param finish the last statements of the transaction
 */
export async function commitFile<T>(
  pool: Pool,
  { accountId, runId, createdAt }: ArtifactRun,
  file: ArtifactFile,
  models: readonly ModelResult[] | null | undefined,
  begin: (transaction: Transaction) => Promise<void>,
  finish: (transaction: Transaction, previousObjectId: string | null) => Promise<T>,
): Promise<T> {
  const { path, step, objectId, bytes, sha256 } = file;
  return await inTransaction(pool, async (transaction) => {
    await runStatement(transaction, LOCK_ACCOUNT, [accountId]);
    await begin(transaction);
    const columns = { object_id: column.text };
    const [previous] = await queryRows(transaction, columns, SELECT_OBJECT, [accountId, runId, path, step]);
    const values = [accountId, runId, path, step, objectId, bytes, sha256, createdAt];
    await runStatement(transaction, UPSERT_FILE, values);
    if (models !== undefined) await runStatement(transaction, DELETE_MODELS, [accountId, runId, step]);
    if (models && models.length > 0)
      await runStatement(transaction, INSERT_MODELS, [
        accountId,
        runId,
        step,
        createdAt,
        ...unnestValues(MODEL_COLUMNS, models),
      ]);
    return await finish(transaction, previous?.object_id ?? null);
  });
}

const MODEL = {
  step: column.integer,
  unique_id: column.text,
  name: column.text,
  resource_type: column.text,
  status: column.text,
  execution_time: column.orNull(column.float),
  message: column.orNull(column.text),
  thread_id: column.orNull(column.text),
};

export type ModelRow = RowOf<typeof MODEL>;

const MODELS_OF_RUN = `
  FROM run_models WHERE account_id = $1 AND run_id = $2
    AND ($3::int IS NULL OR step = $3) AND ($4::text IS NULL OR status = $4)`;
const COUNT_MODELS = `SELECT count(*)::int AS count ${MODELS_OF_RUN}`;
const SELECT_MODELS = `
  SELECT step, ${MODEL_NAMES} ${MODELS_OF_RUN} ORDER BY step, position LIMIT $5 OFFSET $6`;

/** Returns a page of the models of a run, in the order of the file, and their number. Null filters match all. */
export async function listModels(
  database: Queryable,
  { accountId, runId }: { accountId: number; runId: number },
  { step, status }: { step: number | null; status: string | null },
  { limit, offset }: { limit: number; offset: number },
): Promise<{ models: ModelRow[]; totalCount: number }> {
  const values = [accountId, runId, step, status];
  const [counted] = await queryRows(database, { count: column.integer }, COUNT_MODELS, values);
  const models = await queryRows(database, MODEL, SELECT_MODELS, [...values, limit, offset]);
  return { models, totalCount: counted?.count ?? 0 };
}
