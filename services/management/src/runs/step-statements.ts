// SQL by hand: steps are locked with their run, and read without the texts that are not requested.
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { isFinalRunStatus, isStoredRunStatus, RUN_STEP_LIMITS, type RunStep } from '@runhook/contract';
import {
  type CompressedRunStep,
  column,
  compressRunSteps,
  inTransaction,
  type Pool,
  type Queryable,
  queryRows,
  RunStepsLimitError,
  type RunStepsTarget,
  saveRunSteps,
  type Transaction,
} from '@runhook/database';
import { ConflictError, LeaseLostError, NotFoundError } from '../http/errors.ts';
import type { RecordedResponse, ResponseRecorder } from '../http/idempotency.ts';
import { LARGE_BYTES } from '../http/large-bodies.ts';
import { renewLease } from './run-requests.ts';
import { timeSql } from './statements.ts';
import { type RunStepResponse, type StepView, stepResponse } from './step-response.ts';

/** Stores the steps of a run. @throws ConflictError if they exceed a limit */
export async function storeSteps(
  transaction: Transaction,
  target: RunStepsTarget,
  steps: readonly CompressedRunStep[],
): Promise<void> {
  try {
    await saveRunSteps(transaction, target, steps);
  } catch (error) {
    if (error instanceof RunStepsLimitError) throw new ConflictError(error.message);
    throw error;
  }
}

/**
 * Stores steps of a run in progress, in one transaction with the response: the steps of the run without their texts.
 * @param leaseToken token of the runner's lease, which is renewed; null for a report without one
 * @throws NotFoundError; ConflictError if the run is not in progress, another runner has it, or a limit is exceeded
 */
export async function reportSteps(
  pool: Pool,
  target: RunStepsTarget,
  steps: readonly RunStep[],
  recorder: Pick<ResponseRecorder, 'record'>,
  leaseToken: string | null,
): Promise<RecordedResponse> {
  const { accountId, runId } = target;
  const compressed = await compressRunSteps(steps);
  return await inTransaction(pool, async (transaction) => {
    if (leaseToken !== null) await renewLease(transaction, { accountId, runId, token: leaseToken });
    await lockRunInProgress(transaction, target);
    await storeSteps(transaction, target, compressed);
    const stored = await loadRunSteps(transaction, accountId, [runId], { withLogs: false });
    return await recorder.record(transaction, { code: 200, data: stored.get(runId) ?? [] });
  });
}

/** Locks a run until the transaction ends, so that it does not end meanwhile. */
async function lockRunInProgress(
  transaction: Transaction,
  { accountId, runId }: Pick<RunStepsTarget, 'accountId' | 'runId'>,
): Promise<void> {
  const text = 'SELECT status FROM runs WHERE account_id = $1 AND id = $2 FOR UPDATE';
  const [run] = await queryRows(transaction, { status: isStoredRunStatus }, text, [accountId, runId]);
  if (run === undefined) throw new NotFoundError();
  if (['Starting', 'Running'].includes(run.status)) return;
  const message = `The run is not in progress: its status is ${run.status}.`;
  throw isFinalRunStatus(run.status) ? new LeaseLostError(message) : new ConflictError(message);
}

const bytes = (value: unknown): value is Buffer => Buffer.isBuffer(value);

const STEP = {
  run_id: column.digits,
  index: column.integer,
  name: column.text,
  status: isStoredRunStatus,
  started_at: column.orNull(column.text),
  finished_at: column.orNull(column.text),
  created_at: column.text,
  updated_at: column.text,
  logs_bytes: column.integer,
  debug_logs_bytes: column.integer,
  has_logs: column.flag,
  has_debug_logs: column.flag,
  logs: column.orNull(bytes),
  debug_logs: column.orNull(bytes),
};

// The texts of one run always fit. Of a list of runs, those beyond the limit are left out in the order of the rows.
const SELECT_STEPS = `
  SELECT s.run_id, s."index", s.name, s.status, ${['started_at', 'finished_at', 'created_at', 'updated_at'].map(timeSql).join(', ')},
    s.logs_bytes, s.debug_logs_bytes, s.logs IS NOT NULL AS has_logs, s.debug_logs IS NOT NULL AS has_debug_logs,
    CASE WHEN $3 AND s.total <= $5 THEN s.logs END AS logs,
    CASE WHEN $4 AND s.total <= $5 THEN s.debug_logs END AS debug_logs
  FROM (
    SELECT run_steps.*, sum(CASE WHEN $3 THEN logs_bytes ELSE 0 END + CASE WHEN $4 THEN debug_logs_bytes ELSE 0 END)
      OVER (ORDER BY run_id DESC, "index") AS total
    FROM run_steps WHERE account_id = $1 AND run_id = ANY ($2::bigint[])
  ) s
  ORDER BY s.run_id DESC, s."index"`;

const SELECT_SIZE = `
  SELECT coalesce(sum(logs_bytes + debug_logs_bytes), 0)::bigint AS bytes FROM run_steps
  WHERE account_id = $1 AND run_id = ANY ($2::bigint[])`;

/** Texts that a response contains. */
export interface StepTexts {
  /** True when omitted. */
  withLogs?: boolean;
  withDebugLogs?: boolean;
  /** Called before long texts are read; see `ParsedRequest.requireMemory`. */
  requireMemory?: () => void;
}

/** Returns the steps of each run by its id, in the order of their index; runs without steps are missing. */
export async function loadRunSteps(
  database: Queryable,
  accountId: number,
  runIds: readonly number[],
  { withLogs = true, withDebugLogs = false, requireMemory }: StepTexts = {},
): Promise<Map<number, RunStepResponse[]>> {
  const stepsByRun = new Map<number, RunStepResponse[]>();
  if (runIds.length === 0) return stepsByRun;
  if (requireMemory && (withLogs || withDebugLogs)) {
    const [size] = await queryRows(database, { bytes: column.digits }, SELECT_SIZE, [accountId, runIds]);
    if (Number(size?.bytes) > LARGE_BYTES) requireMemory();
  }
  const values = [accountId, runIds, withLogs, withDebugLogs, RUN_STEP_LIMITS.runBytesMax];
  for (const row of await queryRows(database, STEP, SELECT_STEPS, values)) {
    const runId = Number(row.run_id);
    const view: StepView = {
      accountId,
      runId,
      index: row.index,
      name: row.name,
      status: row.status,
      startedAt: row.started_at,
      finishedAt: row.finished_at,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      logsBytes: row.logs_bytes,
      debugLogsBytes: row.debug_logs_bytes,
    };
    if (withLogs) view.logs = row.has_logs ? await textOf(row.logs, 'logs', view) : null;
    if (withDebugLogs)
      view.debugLogs = row.has_debug_logs ? await textOf(row.debug_logs, 'debug_logs', view) : null;
    const steps = stepsByRun.get(runId) ?? [];
    stepsByRun.set(runId, steps);
    steps.push(stepResponse(view));
  }
  return stepsByRun;
}

const decompress = promisify(gunzip);

async function decompressText(compressed: Buffer): Promise<string> {
  // The limit protects the process from a row that this service did not write.
  return (await decompress(compressed, { maxOutputLength: 2 * RUN_STEP_LIMITS.textBytesMax })).toString();
}

/** Returns the text, or a line in its place that says where it is. */
async function textOf(
  compressed: Buffer | null,
  name: StepTextName,
  { accountId, runId, index }: StepView,
): Promise<string> {
  if (compressed !== null) return await decompressText(compressed);
  const path = `/api/v2/accounts/${accountId}/runs/${runId}/steps/${index}/${name}/`;
  return `[This log is left out, because the logs of the listed runs are too long: read it at ${path}.]\n`;
}

export type StepTextName = 'logs' | 'debug_logs';

const SELECT_TEXT: Record<StepTextName, string> = {
  logs: 'SELECT logs AS text FROM run_steps WHERE account_id = $1 AND run_id = $2 AND "index" = $3',
  debug_logs:
    'SELECT debug_logs AS text FROM run_steps WHERE account_id = $1 AND run_id = $2 AND "index" = $3',
};

/** Returns one text of a step; null if the step or the text does not exist. */
export async function loadStepText(
  database: Queryable,
  step: { accountId: number; runId: number; index: number },
  name: StepTextName,
): Promise<string | null> {
  const values = [step.accountId, step.runId, step.index];
  const [row] = await queryRows(database, { text: column.orNull(bytes) }, SELECT_TEXT[name], values);
  return row === undefined || row.text === null ? null : await decompressText(row.text);
}
