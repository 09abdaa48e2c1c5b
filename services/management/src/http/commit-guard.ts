import { DeadlineError, withinDeadline } from '@runhook/runtime';
import { UnavailableError } from './errors.ts';

/**
 * Guarantees that the caller of a request either gets a 503 for a missed deadline or its work is committed, never both.
 *
 *     open ── commit() ──▶ committing: COMMIT follows, and the caller waits for its result
 *      │                     └─ reopen() ──▶ open: nothing was written
 *      └─── cancel() ──▶ cancelled: the caller has its 503, and the work is rolled back before its commit
 */
export class CommitGuard {
  #state: 'open' | 'committing' | 'cancelled' = 'open';
  readonly #cancelListeners: (() => void)[] = [];

  /** Whether the caller has its 503. */
  get isCancelled(): boolean {
    return this.#state === 'cancelled';
  }

  /** Throws if the caller has its 503, so that its work need not begin. */
  requireOpen(): void {
    if (this.#state === 'cancelled') throw new UnavailableError();
  }

  /** Must be called immediately before COMMIT or another irreversible action. Throws if the caller has its 503. */
  commit(): void {
    this.requireOpen();
    this.#state = 'committing';
  }

  /** Reopens a guard that has admitted a commit, when the work has written nothing and is started again. */
  reopen(): void {
    if (this.#state === 'committing') this.#state = 'open';
  }

  /** Calls `listener` when the request is rejected: from then on nothing can be committed. */
  onCancel(listener: () => void): void {
    this.#cancelListeners.push(listener);
  }

  /** Returns whether the caller may be rejected. If true, nothing can be committed afterwards. */
  cancel(): boolean {
    if (this.#state === 'committing') return false;
    this.#state = 'cancelled';
    for (const listener of this.#cancelListeners) listener();
    return true;
  }
}

/**
 * Responds with a 503 after `deadlineMs`, so that a database that hangs does not block the caller; the work that is
 * still running finds the guard cancelled. Only if the work has passed the guard does the caller wait for the result of
 * the COMMIT, at most for the timeout of a query.
 */
export async function respondWithinDeadline<T>(
  deadlineMs: number,
  guard: CommitGuard,
  work: () => Promise<T>,
): Promise<T> {
  const result = work();
  try {
    return await withinDeadline(deadlineMs, () => result);
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    if (guard.cancel()) throw new UnavailableError();
    return await result;
  }
}
