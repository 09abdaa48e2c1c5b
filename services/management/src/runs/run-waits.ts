// SQL by hand: one statement checks the runs that all waiting runners of a process wait for.
import { column, type Queryable, queryRows } from '@runhook/database';
import { TooManyRequestsError } from '../http/errors.ts';
import { CLAIMABLE_SQL } from './run-requests.ts';

/** Interval of the check: the time after which a runner learns of a cancel through another process, at most. */
const POLL_INTERVAL_MS = 250;
const WAITS_MAX = 2_000;
const WAITS_PER_ACCOUNT_MAX = 100;
const RETRY_AFTER_SECONDS = 5;
/** Maximum number of runners of the same filter that one check wakes. */
const WOKEN_MAX = 20;

/** Awaited change of a runner: a run to claim, or the end of its run, as by a cancel. */
export type WaitTarget =
  | { kind: 'request'; accountId: number; jobIds: readonly number[] | null }
  | { kind: 'end'; accountId: number; runId: number };

interface Waiter {
  target: WaitTarget;
  /** Text that is equal for equal targets. */
  key: string;
  wake(isDue: boolean): void;
}

export interface RunWaitsOptions {
  /** The primary: a replica has a cancel late. */
  database: Queryable;
  pollIntervalMs?: number | undefined;
  waitsMax?: { all: number; perAccount: number };
}

/**
 * Lets runners wait for a run without a connection of the database. One statement four times a second checks what all
 * runners of the process wait for; without any there is none. LISTEN would take a connection, which a pooler in
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
      const waiter: Waiter = { target, key: JSON.stringify(target), wake: end };
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
    try {
      const waiters = [...this.#waiters];
      const counts = await countDue(this.#options.database, waiters);
      // The runner that has waited longest is woken first.
      for (const waiter of waiters) {
        const count = counts.get(waiter.key) ?? 0;
        if (count === 0) continue;
        if (waiter.target.kind === 'request') counts.set(waiter.key, count - 1);
        waiter.wake(true);
      }
    } catch {
      // The next check follows. The health checks report an unavailable database.
    } finally {
      this.#isPolling = false;
      if (this.#waiters.size > 0) this.#schedule();
    }
  }
}

const COUNT = { key: column.text, count: column.digits };

const COUNT_REQUESTS = `
  SELECT w.key, found.count
  FROM unnest($1::text[], $2::bigint[], $3::text[]) AS w (key, account_id, job_ids)
  CROSS JOIN LATERAL (
    SELECT count(*) FROM (
      SELECT FROM run_requests q JOIN runs r ON r.account_id = q.account_id AND r.id = q.run_id
      WHERE q.account_id = w.account_id AND (w.job_ids IS NULL OR q.job_id = ANY (w.job_ids::bigint[]))
        AND ${CLAIMABLE_SQL}
      LIMIT ${WOKEN_MAX}) claimable
  ) found`;

const COUNT_ENDED = `
  SELECT w.key, 1::bigint AS count
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS w (key, account_id, run_id)
  JOIN runs r ON r.account_id = w.account_id AND r.id = w.run_id
  WHERE r.status NOT IN ('Queued', 'Starting', 'Running')`;

/** Returns the numbers of runs that are due, by the key of the waiters. */
async function countDue(database: Queryable, waiters: readonly Waiter[]): Promise<Map<string, number>> {
  const targets = new Map(waiters.map(({ key, target }) => [key, target]));
  const requests: [string, number, string | null][] = [];
  const ends: [string, number, number][] = [];
  for (const [key, target] of targets) {
    if (target.kind === 'end') ends.push([key, target.accountId, target.runId]);
    else requests.push([key, target.accountId, target.jobIds && `{${target.jobIds.join()}}`]);
  }
  const columnsOf = (rows: readonly unknown[][]) => [0, 1, 2].map((index) => rows.map((row) => row[index]));
  const found = [
    ...(requests.length > 0
      ? await queryRows(database, COUNT, COUNT_REQUESTS, columnsOf(requests), 'count-claimable-runs')
      : []),
    ...(ends.length > 0
      ? await queryRows(database, COUNT, COUNT_ENDED, columnsOf(ends), 'count-ended-runs')
      : []),
  ];
  return new Map(found.map(({ key, count }) => [key, Number(count)]));
}
