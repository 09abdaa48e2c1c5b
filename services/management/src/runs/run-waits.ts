// SQL by hand: two statements check the runs that all waiting runners of a process wait for.
import { column, type Queryable, queryRows } from '@runhook/database';
import { TooManyRequestsError } from '../http/errors.ts';
import { CLAIMABLE_SQL } from './run-requests.ts';

/** Interval of the check: the time after which a runner learns of a cancel through another process, at most. */
const POLL_INTERVAL_MS = 250;
const WAITS_MAX = 2_000;
const WAITS_PER_ACCOUNT_MAX = 100;
const RETRY_AFTER_SECONDS = 5;
/** Maximum number of runners of an account that one check wakes. */
const WOKEN_MAX = 20;

/** Awaited change of a runner: a run to claim, or the end of its run, as by a cancel. */
export type WaitTarget =
  | { kind: 'request'; accountId: number; jobIds: readonly number[] | null }
  | { kind: 'end'; accountId: number; runId: number };

interface Waiter {
  target: WaitTarget;
  wake(isDue: boolean): void;
}

export interface RunWaitsOptions {
  /** The primary: a replica has a cancel late. */
  database: Queryable;
  pollIntervalMs?: number;
  waitsMax?: { all: number; perAccount: number };
}

/**
 * Lets runners wait for a run without a connection of the database. Two statements four times a second check what all
 * runners of the process wait for; without any there are none. LISTEN would take a connection, which a pooler in
 * transaction mode does not permit. A woken runner must check again, because another may have been faster.
 */
export class RunWaits {
  readonly #options: RunWaitsOptions;
  readonly #waiters = new Set<Waiter>();
  #timer: NodeJS.Timeout | undefined;
  #isPolling = false;
  #isClosed = false;

  constructor(options: RunWaitsOptions) {
    this.#options = options;
  }

  /** Number of waiting runners. */
  get count(): number {
    return this.#waiters.size;
  }

  /**
   * Resolves with true when there may be what the runner waits for, and with false after `waitMs`, when the signal is
   * aborted, or when the process stops. Throws a 429 if too many runners wait.
   */
  wait(target: WaitTarget, waitMs: number, signal: AbortSignal): Promise<boolean> {
    this.#requireCapacity(target.accountId);
    if (this.#isClosed || signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (isDue: boolean) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        this.#waiters.delete(waiter);
        resolve(isDue);
      };
      const abort = () => end(false);
      const timer = setTimeout(end, waitMs, false);
      const waiter: Waiter = { target, wake: end };
      signal.addEventListener('abort', abort);
      this.#waiters.add(waiter);
      this.#schedule();
    });
  }

  /** Checks at once, because this process has just changed something. */
  notify(accountId: number): void {
    if ([...this.#waiters].some(({ target }) => target.accountId === accountId)) void this.#poll();
  }

  /** Ends all waits: the runners ask another process. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const waiter of [...this.#waiters]) waiter.wake(false);
  }

  #requireCapacity(accountId: number): void {
    const { all, perAccount } = this.#options.waitsMax ?? {
      all: WAITS_MAX,
      perAccount: WAITS_PER_ACCOUNT_MAX,
    };
    const ofAccount = [...this.#waiters].filter(({ target }) => target.accountId === accountId).length;
    if (this.#waiters.size >= all || ofAccount >= perAccount)
      throw new TooManyRequestsError(RETRY_AFTER_SECONDS);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#poll();
    }, this.#options.pollIntervalMs ?? POLL_INTERVAL_MS);
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    // Ends first, and separately: they are found by primary key, however many requests the accounts have.
    // The next check follows an error. The health checks report an unavailable database.
    for (const wakeDue of [wakeEnded, wakeForRequests])
      await wakeDue(this.#options.database, [...this.#waiters]).catch(() => undefined);
    this.#isPolling = false;
    if (this.#waiters.size > 0) this.#schedule();
  }
}

const ENDED = { account_id: column.digits, run_id: column.digits };

const SELECT_ENDED = `
  SELECT r.account_id, r.id AS run_id FROM unnest($1::bigint[], $2::bigint[]) AS w (account_id, run_id)
  JOIN runs r ON r.account_id = w.account_id AND r.id = w.run_id
  WHERE r.status NOT IN ('Queued', 'Starting', 'Running')`;

/** Wakes the runners whose runs have ended. */
async function wakeEnded(database: Queryable, waiters: readonly Waiter[]): Promise<void> {
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
async function wakeForRequests(database: Queryable, waiters: readonly Waiter[]): Promise<void> {
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
