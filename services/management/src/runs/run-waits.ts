// SQL by hand: two statements check the runs that all waiting runners of a process wait for.
import { column, type Queryable, queryRows } from '@runhook/database';
import { PolledWaits, type Waiter, type WaitOptions } from '../http/polled-waits.ts';
import { CLAIMABLE_SQL } from './run-requests.ts';

/** Interval of the check: the time after which a runner learns of a cancel through another process, at most. */
const POLL_INTERVAL_MS = 250;
/** Maximum number of runners of an account that one check wakes. */
const WOKEN_MAX = 20;

/** Awaited change of a runner: a run to claim, or the end of its run, as by a cancel. */
export type WaitTarget =
  | { kind: 'request'; accountId: number; jobIds: readonly number[] | null }
  | { kind: 'end'; accountId: number; runId: number };

type RunWaiter = Waiter<WaitTarget>;

/** Lets runners wait for a run. Two statements four times a second check what all runners of the process wait for. */
export class RunWaits extends PolledWaits<WaitTarget> {
  /** @param options `database`: the primary, since a replica has a cancel late */
  constructor({ database, ...options }: { database: Queryable } & WaitOptions) {
    super({
      pollIntervalMs: () => POLL_INTERVAL_MS,
      // Ends first, and separately: they are found by primary key, however many requests the accounts have.
      checks: [wakeEnded, wakeForRequests].map(
        (wakeDue) => (waiters: readonly RunWaiter[]) => wakeDue(database, waiters),
      ),
      ...options,
    });
  }
}

const ENDED = { account_id: column.digits, run_id: column.digits };

const SELECT_ENDED = `
  SELECT r.account_id, r.id AS run_id FROM unnest($1::bigint[], $2::bigint[]) AS w (account_id, run_id)
  JOIN runs r ON r.account_id = w.account_id AND r.id = w.run_id
  WHERE r.status NOT IN ('Queued', 'Starting', 'Running')`;

/** Wakes the runners whose runs have ended. */
async function wakeEnded(database: Queryable, waiters: readonly RunWaiter[]): Promise<void> {
  const ends = waiters.flatMap(({ target, wake }) => (target.kind === 'end' ? [{ ...target, wake }] : []));
  if (ends.length === 0) return;
  const values = [ends.map(({ accountId }) => accountId), ends.map(({ runId }) => runId)];
  const rows = await queryRows(database, ENDED, SELECT_ENDED, values, 'select-ended-runs');
  const ended = new Set(rows.map(({ account_id, run_id }) => `${account_id}/${run_id}`));
  for (const { accountId, runId, wake } of ends) if (ended.has(`${accountId}/${runId}`)) wake(true);
}

const CLAIMABLE = { account_id: column.digits, job_id: column.digits, count: column.digits };

// Each account's requests are read once, however many filters its runners have: these are applied in memory.
const COUNT_CLAIMABLE = `
  SELECT q.account_id, q.job_id, count(*) FROM run_requests q
  JOIN runs r ON r.account_id = q.account_id AND r.id = q.run_id
  WHERE q.account_id = ANY ($1::bigint[]) AND ${CLAIMABLE_SQL}
  GROUP BY q.account_id, q.job_id`;

/** Wakes as many runners as there are runs that they may claim, those that have waited longest first. */
async function wakeForRequests(database: Queryable, waiters: readonly RunWaiter[]): Promise<void> {
  const requests = waiters.flatMap(({ target, wake }) =>
    target.kind === 'request' ? [{ ...target, wake }] : [],
  );
  if (requests.length === 0) return;
  const accountIds = [...new Set(requests.map(({ accountId }) => accountId))];
  const rows = await queryRows(database, CLAIMABLE, COUNT_CLAIMABLE, [accountIds], 'count-claimable-runs');
  const accounts = new Map(accountIds.map((id) => [id, { counts: new Map<number, number>(), woken: 0 }]));
  for (const { account_id, job_id, count } of rows)
    accounts.get(Number(account_id))?.counts.set(Number(job_id), Number(count));
  for (const { accountId, jobIds, wake } of requests) {
    const account = accounts.get(accountId);
    if (account === undefined || account.woken === WOKEN_MAX || !takeRun(account.counts, jobIds)) continue;
    account.woken += 1;
    wake(true);
  }
}

/**
 * Subtracts a run of one of the jobs; null for any job. Returns false without one.
 * @param counts positive numbers of runs, by the id of the job
 */
function takeRun(counts: Map<number, number>, jobIds: readonly number[] | null): boolean {
  for (const jobId of jobIds ?? counts.keys()) {
    const count = counts.get(jobId);
    if (count === undefined) continue;
    if (count === 1) counts.delete(jobId);
    else counts.set(jobId, count - 1);
    return true;
  }
  return false;
}
