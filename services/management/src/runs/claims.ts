// SQL by hand: the run that a lease names is changed in the transaction that has locked it.
import { column, type Queryable, queryRows } from '@runhook/database';
import { type ClaimFilter, type Lease, leaseRun } from './run-requests.ts';
import type { RunView } from './run-view.ts';
import { RUN, RUN_COLUMNS, toRunView } from './statements.ts';

/** A run with the lease of the runner that claimed it. */
export interface RunClaim {
  run: RunView;
  /** Commands to execute. */
  executeSteps: string[];
  lease: Lease;
}

const MARK_STARTING = `
  UPDATE runs SET status = CASE status WHEN 'Queued' THEN 'Starting' ELSE status END
  WHERE account_id = $1 AND id = $2
  RETURNING ${RUN_COLUMNS}`;

/**
 * Claims the oldest matching run that no runner has: a queued run becomes Starting; a run whose lease expired keeps its
 * status. Returns null without one. Must run in a transaction, because the lease is invalid without the run.
 */
export async function claimRun(
  transaction: Queryable,
  accountId: number,
  filter: ClaimFilter,
): Promise<RunClaim | null> {
  const lease = await leaseRun(transaction, accountId, filter);
  if (lease === null) return null;
  const [row] = await queryRows(transaction, RUN, MARK_STARTING, [accountId, lease.runId]);
  if (row === undefined) throw new TypeError('a leased run is locked');
  const run = toRunView(row);
  const executeSteps = run.trigger?.steps_override ?? (await findJobSteps(transaction, run));
  return { run, executeSteps, lease };
}

const SELECT_JOB_STEPS = `SELECT definition->'execute_steps' AS steps FROM jobs WHERE account_id = $1 AND id = $2`;

/** Returns the commands of the run's job; none if it has none, or was deleted. */
async function findJobSteps(database: Queryable, { account_id, job_id }: RunView): Promise<string[]> {
  const [job] = await queryRows(database, { steps: column.orNull(column.texts) }, SELECT_JOB_STEPS, [
    account_id,
    job_id,
  ]);
  return job?.steps ?? [];
}
