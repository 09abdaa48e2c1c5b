import type { RunRequest } from '@runhook/contract';
import { type BatchOptions, column, type Pool, queryRows, runInPages, runStatement } from '@runhook/database';
import type { RunRequestQueue } from '@runhook/queue';

export interface RunRequestDependencies extends BatchOptions {
  pool: Pool;
  runRequests: Pick<RunRequestQueue, 'add' | 'remove'>;
}

const REQUEST = {
  account_id: column.digits,
  run_id: column.digits,
  job_id: column.digits,
  attempts: column.integer,
};

// A run that a runner started without a lease is no longer offered, and its request has ended, too.
const END_REQUESTS = `
  UPDATE run_requests ended SET ended_at = now()
  FROM (
    SELECT q.account_id, q.run_id FROM run_requests q
    LEFT JOIN runs r ON r.account_id = q.account_id AND r.id = q.run_id
    WHERE q.ended_at IS NULL AND (
      r.id IS NULL OR r.status NOT IN ('Queued', 'Starting', 'Running')
      OR (q.lease_expires_at IS NULL AND r.status <> 'Queued'))
    LIMIT $1 FOR UPDATE OF q SKIP LOCKED
  ) found
  WHERE ended.account_id = found.account_id AND ended.run_id = found.run_id
  RETURNING ended.account_id, ended.run_id, ended.job_id, ended.attempts`;

// Repeated each minute, because the queue may have lost its jobs; a job that it has is not added twice. The first time is
// left to the process that triggered the run, for a few seconds. Repetitions come last, those not made for longest first:
// otherwise an account with many unclaimed runs would delay those of all others.
const SELECT_UNQUEUED = `
  SELECT account_id, run_id, job_id, attempts FROM run_requests
  WHERE ended_at IS NULL AND (lease_expires_at IS NULL OR lease_expires_at <= now())
    AND CASE WHEN enqueued_at IS NULL THEN created_at < now() - interval '3 seconds'
      ELSE enqueued_at < greatest(lease_expires_at, now() - interval '1 minute') END
  ORDER BY enqueued_at IS NOT NULL AND (lease_expires_at IS NULL OR enqueued_at >= lease_expires_at),
    coalesce(enqueued_at, created_at) LIMIT $1`;

const MARK_QUEUED = `
  UPDATE run_requests q SET enqueued_at = now()
  FROM unnest($1::bigint[], $2::bigint[]) AS queued (account_id, run_id)
  WHERE q.account_id = queued.account_id AND q.run_id = queued.run_id`;

/**
 * Offers runs again whose lease expired or whose job the queue lost, and ends the requests of runs that have ended. Safe
 * to repeat, and to run concurrently. Throws `QueueUnavailableError`.
 * @returns the number of runs that were added to the queue, and of requests that ended
 */
export async function reconcileRunRequests(
  dependencies: RunRequestDependencies,
): Promise<{ queued: number; ended: number }> {
  const ended = await runInPages(dependencies, (size) => endRequests(dependencies, size));
  const queued = await runInPages(dependencies, (size) => addUnqueued(dependencies, size));
  return { queued, ended };
}

async function endRequests({ pool, runRequests }: RunRequestDependencies, size: number): Promise<number> {
  const ended = await queryRows(pool, REQUEST, END_REQUESTS, [size], 'end-run-requests');
  // Jobs that no runner has taken: of the last claim, if that was over REST, and of the next one.
  if (ended.length > 0)
    await runRequests.remove(ended.flatMap((row) => [requestOf(row, 0), requestOf(row, 1)]));
  return ended.length;
}

async function addUnqueued({ pool, runRequests }: RunRequestDependencies, size: number): Promise<number> {
  const unqueued = await queryRows(pool, REQUEST, SELECT_UNQUEUED, [size], 'select-unqueued-run-requests');
  if (unqueued.length === 0) return 0;
  await runRequests.add(unqueued.map((row) => requestOf(row, 1)));
  const ids = [unqueued.map((row) => row.account_id), unqueued.map((row) => row.run_id)];
  await runStatement(pool, MARK_QUEUED, ids);
  return unqueued.length;
}

function requestOf(
  row: { account_id: string; run_id: string; job_id: string; attempts: number },
  offset: 0 | 1,
): RunRequest {
  return {
    accountId: Number(row.account_id),
    runId: Number(row.run_id),
    jobId: Number(row.job_id),
    attempt: row.attempts + offset,
  };
}
