// SQL by hand: a triggered run is written as the hot path writes others, with columns of its options.
import { inTransaction, type JobView, type Pool, queryRows, type Transaction } from '@runhook/database';
import type { EndpointResponse } from '../http/envelope.ts';
import { ConflictError, NotFoundError } from '../http/errors.ts';
import type { RecordedResponse, ResponseRecorder } from '../http/idempotency.ts';
import { findLatestRun } from './list-runs.ts';
import { findJobs, keyOf } from './report-reads.ts';
import { drawFreeRunId, drawRunIds } from './run-counters.ts';
import { hasRequestCapacity, insertRequest, OPEN_REQUESTS_MAX } from './run-requests.ts';
import type { TriggerOptions } from './run-trigger.ts';
import type { RunView } from './run-view.ts';
import { findRun, RUN, RUN_COLUMNS, toRunView } from './statements.ts';
import { transitionRun } from './transitions.ts';

/** The account of a call that triggers a run, and the recorder of its response. */
export interface TriggerCall {
  accountId: number;
  recorder: ResponseRecorder;
  createResponse: (run: RunView) => EndpointResponse;
}

/** Creates queued runs of jobs. */
export interface Triggers {
  /** Throws a 404 for an unknown job, and a 409 if too many runs are open. */
  trigger(call: TriggerCall, jobId: number, options: TriggerOptions): Promise<RecordedResponse>;
  /** Creates a run with the options of one that failed or was cancelled; throws a 409 for another one. */
  retry(call: TriggerCall, runId: number): Promise<RecordedResponse>;
  /** Retries the job's latest run if that failed; otherwise triggers the job. */
  rerun(call: TriggerCall, jobId: number): Promise<RecordedResponse>;
}

export interface TriggersDependencies {
  pool: Pool;
  /** Draws run ids. */
  idPool: Pool;
  /** Called after the commit. */
  onTriggered: (run: RunView) => void;
}

/** The run to create. */
interface NewRun {
  jobId: number;
  options: TriggerOptions;
  /** The run that this one repeats; null for none. */
  retryOf: number | null;
}

export function createTriggers({ pool, idPool, onTriggered }: TriggersDependencies): Triggers {
  async function create(
    { accountId, recorder, createResponse }: TriggerCall,
    plan: (transaction: Transaction) => Promise<NewRun>,
  ): Promise<RecordedResponse> {
    const ids = await drawRunIds(idPool, [{ accountId, count: 1, above: 0 }]);
    const { run, response } = await inTransaction(pool, async (transaction) => {
      const newRun = await plan(transaction);
      const run = await insertRun(transaction, idPool, accountId, ids.get(accountId) as number, newRun);
      return { run, response: await recorder.record(transaction, createResponse(run)) };
    });
    onTriggered(run);
    return response;
  }

  return {
    trigger: (call, jobId, options) => create(call, async () => ({ jobId, options, retryOf: null })),
    retry: (call, runId) =>
      create(call, async (transaction) => {
        const run = await findRun(transaction, call.accountId, runId);
        if (run === null) throw new NotFoundError();
        return retryOf(run);
      }),
    rerun: (call, jobId) =>
      create(call, async (transaction) => {
        await findJob(transaction, call.accountId, jobId);
        const latest = await findLatestRun(transaction, call.accountId, jobId);
        return latest?.status === 'Errored' ? retryOf(latest) : { jobId, options: {}, retryOf: null };
      }),
  };
}

function retryOf(run: RunView): NewRun {
  if (run.status !== 'Errored' && run.status !== 'Canceled')
    throw new ConflictError('Only a run that has failed or was cancelled can be retried.');
  return { jobId: run.job_id, options: run.trigger ?? {}, retryOf: run.id };
}

const INSERT = `
  INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name, status,
    reason, trigger, retry_of, start_reported)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, false)
  ON CONFLICT (account_id, id) DO NOTHING
  RETURNING ${RUN_COLUMNS}`;

/** Inserts the run with its request. Draws another id if a runner has used this one meanwhile. */
async function insertRun(
  transaction: Transaction,
  idPool: Pool,
  accountId: number,
  firstId: number,
  { jobId, options, retryOf }: NewRun,
): Promise<RunView> {
  const job = await findJob(transaction, accountId, jobId);
  if (!(await hasRequestCapacity(transaction, accountId)))
    throw new ConflictError(
      `The account has ${OPEN_REQUESTS_MAX} triggered runs that have not ended, the maximum.`,
    );
  const transition = transitionRun(null, { call: 'trigger' });
  if (transition.kind !== 'changed') throw new TypeError('a trigger makes a run');
  const reason = options.cause ?? (retryOf === null ? null : `Retry of run ${retryOf}`);
  for (let id = firstId; ; id = await drawFreeRunId(idPool, accountId)) {
    const values = [...jobValues(job, id), transition.state.status, reason, JSON.stringify(options), retryOf];
    const [row] = await queryRows(transaction, RUN, INSERT, values);
    if (row === undefined) continue;
    await insertRequest(transaction, { accountId, runId: id, jobId });
    return toRunView(row);
  }
}

/** Throws a 404 for an unknown job. */
async function findJob(transaction: Transaction, accountId: number, jobId: number): Promise<JobView> {
  const { found } = await findJobs(transaction, [{ accountId, id: jobId }]);
  const job = found.get(keyOf({ accountId, id: jobId }));
  if (job === undefined) throw new NotFoundError();
  return job;
}

function jobValues(job: JobView, id: number): unknown[] {
  return [
    job.account_id,
    id,
    job.id,
    job.name,
    job.project_id,
    job.project_name,
    job.environment_id,
    job.environment_name,
  ];
}
