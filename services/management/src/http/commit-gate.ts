import { DeadlineError, withinDeadline } from '@runhook/runtime';
import { UnavailableError } from './errors.ts';

/**
 * Of one request: its caller is refused because it took too long, or its work is committed, never both.
 *
 *     open ── pass() ──▶ passed: COMMIT follows, and the caller waits for what comes of it
 *      │                   └─ reopen() ──▶ open: nothing was written after all
 *      └───── shut() ──▶ shut: the caller has its 503, and work that comes to its commit is rolled back
 */
export class CommitGate {
  #state: 'open' | 'passed' | 'shut' = 'open';
  readonly #shutListeners: (() => void)[] = [];

  /** Throws once the caller was refused: work that was not begun is not worth beginning. */
  requireOpen(): void {
    if (this.#state === 'shut') throw new UnavailableError();
  }

  /** The last thing before COMMIT, or before anything else that cannot be undone. Throws once the caller was refused. */
  pass(): void {
    this.requireOpen();
    this.#state = 'passed';
  }

  /** What had passed has written nothing, and begins anew. */
  reopen(): void {
    if (this.#state === 'passed') this.#state = 'open';
  }

  /** Calls `listener` when the request is rejected: from then on nothing can be committed. */
  onShut(listener: () => void): void {
    this.#shutListeners.push(listener);
  }

  /** Whether the caller may be refused, and then nothing passes any more. */
  shut(): boolean {
    if (this.#state === 'passed') return false;
    this.#state = 'shut';
    for (const listener of this.#shutListeners) listener();
    return true;
  }
}

/**
 * A database that neither answers nor breaks must not keep the caller: it gets a 503 after `deadlineMs`, and what goes on
 * without it finds the gate shut. Only for the answer to a COMMIT it waits on: as long as that may take, it is bounded by
 * the limit of every query.
 */
export async function answerInTime<T>(
  deadlineMs: number,
  gate: CommitGate,
  work: () => Promise<T>,
): Promise<T> {
  const working = work();
  try {
    return await withinDeadline(deadlineMs, () => working);
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    if (gate.shut()) throw new UnavailableError();
    return await working;
  }
}
