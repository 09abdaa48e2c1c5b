import { TooManyRequestsError } from './errors.ts';

const WAITS_MAX = 2_000;
const WAITS_PER_ACCOUNT_MAX = 100;
const RETRY_AFTER_SECONDS = 5;

/** A request that waits. */
export interface Waiter<Target> {
  target: Target;
  /** Ends the wait. @param isDue whether the request must be handled again */
  wake(isDue: boolean): void;
}

/** Options that tests replace. */
export interface WaitOptions {
  /** Returns the interval of the checks for a number of waiting requests. */
  pollIntervalMs?: (waiters: number) => number;
  waitsMax?: { all: number; perAccount: number };
}

interface PolledWaitsOptions<Target> extends WaitOptions {
  pollIntervalMs: (waiters: number) => number;
  /** Functions that wake those of the waiters whose target has changed. */
  checks: ((waiters: readonly Waiter<Target>[]) => Promise<void>)[];
}

/**
 * Lets requests wait for a change without a connection of the database: checks poll for all of them together; without
 * any there is no check. LISTEN would take a connection, which a pooler in transaction mode does not permit. A woken
 * request must check again, because another may have been faster.
 */
export class PolledWaits<Target extends { accountId: number }> {
  readonly #options: PolledWaitsOptions<Target>;
  readonly #waiters = new Set<Waiter<Target>>();
  #timer: NodeJS.Timeout | undefined;
  #isPolling = false;
  #isClosed = false;

  constructor(options: PolledWaitsOptions<Target>) {
    this.#options = options;
  }

  /** Number of waiting requests. */
  get count(): number {
    return this.#waiters.size;
  }

  /**
   * Resolves with true when there may be what the request waits for, and with false after `waitMs`, when the signal is
   * aborted, or when the process stops. Throws a 429 if too many requests wait.
   */
  wait(target: Target, waitMs: number, signal: AbortSignal): Promise<boolean> {
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
      const waiter: Waiter<Target> = { target, wake: end };
      signal.addEventListener('abort', abort);
      this.#waiters.add(waiter);
      this.#schedule();
    });
  }

  /** Checks at once, because this process has just changed something. */
  notify(accountId: number): void {
    if ([...this.#waiters].some(({ target }) => target.accountId === accountId)) void this.#poll();
  }

  /** Ends all waits: the callers ask another process. */
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
    }, this.#options.pollIntervalMs(this.#waiters.size));
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    // The next check follows an error. The health checks report an unavailable database.
    for (const check of this.#options.checks) await check([...this.#waiters]).catch(() => undefined);
    this.#isPolling = false;
    if (this.#waiters.size > 0) this.#schedule();
  }
}
