import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { isFinalRunStatus, isStoredRunStatus, RUN_STEP_LIMITS, type RunStep } from '@runhook/contract';
import type { Queryable, Transaction } from './open-database.ts';
import { column, queryRows } from './rows.ts';
import { runStatement } from './statements.ts';
import { type UnnestColumns, unnestSql, unnestValues } from './unnest.ts';

/** A step whose texts are compressed, ready to be stored. */
export interface CompressedRunStep extends Omit<RunStep, 'logs' | 'debug_logs'> {
  logs: Buffer | null;
  debugLogs: Buffer | null;
  logsBytes: number;
  debugLogsBytes: number;
  /** Size that counts towards the quota of the account. */
  storedBytes: number;
}

const compress = promisify(gzip);

/** Approximate size of a row without its texts. */
const ROW_BYTES = 128;

/** Compresses the texts of steps. Must be called before the transaction, which would last for as long. */
export function compressRunSteps(steps: readonly RunStep[]): Promise<CompressedRunStep[]> {
  return Promise.all(
    steps.map(async ({ logs, debug_logs, ...step }) => {
      const [compressedLogs, debugLogs] = [await compressText(logs), await compressText(debug_logs)];
      const textBytes = (compressedLogs?.length ?? 0) + (debugLogs?.length ?? 0);
      return {
        ...step,
        logs: compressedLogs,
        debugLogs,
        logsBytes: Buffer.byteLength(logs ?? ''),
        debugLogsBytes: Buffer.byteLength(debug_logs ?? ''),
        storedBytes: ROW_BYTES + Buffer.byteLength(step.name) + textBytes,
      };
    }),
  );
}

// The lowest level takes a third of the CPU of the default one, for a tenth more bytes of logs.
async function compressText(text: string | null): Promise<Buffer | null> {
  return text === null ? null : await compress(text, { level: constants.Z_BEST_SPEED });
}

/** Steps that exceed a limit of their run or account. Nothing was stored. */
export class RunStepsLimitError extends Error {
  readonly code = 'run_steps_limit';
}

/** The run of steps, and the quota of its account. */
export interface RunStepsTarget {
  accountId: number;
  runId: number;
  /** Maximum sum of `storedBytes` of the account. */
  accountBytesMax: number;
  /** Whether steps on record that have ended are not replaced: always, or not by those in progress; omitted for never. */
  retainsEnded?: 'always' | 'from_progress' | undefined;
}

// Locks the row, so that writes of an account's steps follow each other and none exceeds a limit.
const LOCK_USAGE = `
  INSERT INTO run_steps_usage AS u (account_id, bytes) VALUES ($1, 0)
  ON CONFLICT (account_id) DO UPDATE SET bytes = u.bytes
  RETURNING bytes`;

const STORED_SIZES = `
  SELECT "index", status, (logs_bytes + debug_logs_bytes) AS text_bytes, stored_bytes FROM run_steps
  WHERE account_id = $1 AND run_id = $2`;

const STEP_COLUMNS: UnnestColumns<CompressedRunStep> = {
  index: ['integer', ({ index }) => index],
  name: ['text', ({ name }) => name],
  status: ['text', ({ status }) => status],
  started_at: ['timestamptz', (step) => step.started_at],
  finished_at: ['timestamptz', (step) => step.finished_at],
  logs: ['bytea', ({ logs }) => logs],
  debug_logs: ['bytea', ({ debugLogs }) => debugLogs],
  logs_bytes: ['integer', ({ logsBytes }) => logsBytes],
  debug_logs_bytes: ['integer', ({ debugLogsBytes }) => debugLogsBytes],
  stored_bytes: ['integer', ({ storedBytes }) => storedBytes],
};
const STEP_COLUMN_NAMES = Object.keys(STEP_COLUMNS).map((name) => `"${name}"`);

const UPSERT_STEPS = `
  INSERT INTO run_steps (account_id, run_id, created_at, updated_at, ${STEP_COLUMN_NAMES.join(', ')})
  SELECT $1::bigint, $2::bigint, now(), now(), ${STEP_COLUMN_NAMES.map((name) => `s.${name}`).join(', ')}
  FROM ${unnestSql(STEP_COLUMNS, 3, 's')}
  ON CONFLICT (account_id, run_id, "index") DO UPDATE
  SET updated_at = EXCLUDED.updated_at, ${STEP_COLUMN_NAMES.map((name) => `${name} = EXCLUDED.${name}`).join(', ')}`;

const SET_USAGE = 'UPDATE run_steps_usage SET bytes = $2 WHERE account_id = $1';

/**
 * Stores steps of a run, and replaces those with the same index that `retainsEnded` does not retain. Safe to repeat. The
 * caller has locked the run if its state matters.
 * @throws RunStepsLimitError; the transaction must then be rolled back
 */
export async function saveRunSteps(
  transaction: Transaction,
  { accountId, runId, accountBytesMax, retainsEnded }: RunStepsTarget,
  reported: readonly CompressedRunStep[],
): Promise<void> {
  if (reported.length === 0) return;
  const [usage] = await queryRows(transaction, { bytes: column.digits }, LOCK_USAGE, [accountId]);
  const sizes = await queryRows(
    transaction,
    {
      index: column.integer,
      status: isStoredRunStatus,
      text_bytes: column.integer,
      stored_bytes: column.integer,
    },
    STORED_SIZES,
    [accountId, runId],
  );
  const ended = new Set(sizes.filter(({ status }) => isFinalRunStatus(status)).map(({ index }) => index));
  const isRetained = ({ index, status }: CompressedRunStep) =>
    ended.has(index) && (retainsEnded === 'always' || !isFinalRunStatus(status));
  const steps = retainsEnded !== undefined ? reported.filter((step) => !isRetained(step)) : reported;
  if (steps.length === 0) return;
  const indexes = new Set(steps.map(({ index }) => index));
  const remaining = sizes.filter(({ index }) => !indexes.has(index));
  const replaced = sizes.filter(({ index }) => indexes.has(index));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  requireWithinRun(
    remaining.length + steps.length,
    sum(remaining.map((row) => row.text_bytes)) +
      sum(steps.map(({ logsBytes, debugLogsBytes }) => logsBytes + debugLogsBytes)),
  );
  const addedBytes = sum(steps.map(({ storedBytes }) => storedBytes));
  const replacedBytes = sum(replaced.map((row) => row.stored_bytes));
  const accountBytes = Math.max(0, Number(usage?.bytes) + addedBytes - replacedBytes);
  if (accountBytes > accountBytesMax && addedBytes > replacedBytes) {
    const quota = `the ${accountBytesMax} bytes of compressed run steps that an account may have`;
    throw new RunStepsLimitError(`The steps exceed ${quota}.`);
  }
  await runStatement(transaction, UPSERT_STEPS, [accountId, runId, ...unnestValues(STEP_COLUMNS, steps)]);
  await runStatement(transaction, SET_USAGE, [accountId, accountBytes]);
}

function requireWithinRun(steps: number, textBytes: number): void {
  const { stepsMax, runBytesMax } = RUN_STEP_LIMITS;
  if (steps > stepsMax)
    throw new RunStepsLimitError(`The run would have ${steps} steps; it may have ${stepsMax}.`);
  if (textBytes > runBytesMax)
    throw new RunStepsLimitError(
      `The logs of the run would have ${textBytes} bytes; they may have ${runBytesMax}.`,
    );
}

// Locks the usage first, as writes of steps do. The count, which is computed before, is always true.
const DELETE_STEPS = `
  WITH locked AS MATERIALIZED (
    SELECT account_id FROM run_steps_usage WHERE account_id = $1 FOR UPDATE
  ), deleted AS (
    DELETE FROM run_steps
    WHERE account_id = $1 AND run_id = ANY ($2::bigint[]) AND (SELECT count(*) FROM locked) >= 0
    RETURNING stored_bytes
  )
  UPDATE run_steps_usage SET bytes = greatest(0, bytes - (SELECT coalesce(sum(stored_bytes), 0)::bigint FROM deleted))
  WHERE account_id = $1`;

/** Deletes the steps of runs, in a statement for each account. Not for a transaction. Safe to repeat. */
export async function deleteRunSteps(
  database: Queryable,
  runs: readonly { accountId: string; runId: string }[],
): Promise<void> {
  for (const accountId of new Set(runs.map((run) => run.accountId))) {
    const runIds = runs.flatMap((run) => (run.accountId === accountId ? [run.runId] : []));
    await runStatement(database, DELETE_STEPS, [accountId, runIds], 'delete-run-steps');
  }
}
