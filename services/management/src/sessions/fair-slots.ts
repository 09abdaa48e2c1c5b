/** A caller that asks for a slot. */
export interface SlotRequest {
  /** Callers of one group share its turns: a network, or a user. */
  group: string;
  /** Failed attempts that postpone the caller. */
  failures: number;
}

interface Waiter {
  group: string;
  round: number;
  admit: (isAdmitted: boolean) => void;
}

/** Maximum number of rounds that failed attempts cost, so that a flood cannot starve a user who mistyped a password. */
const PENALTY_ROUNDS_MAX = 4;

/**
 * Slots with a bounded queue that is served in rounds: each group has one turn in a round, however many of its callers
 * wait, and each failed attempt of its group puts a caller one round later. So one network cannot delay others, and a network
 * that has failed comes after one that has not. Rounds advance, so every waiter that is not evicted is served.
 */
export class FairSlots {
  #free: number;
  readonly #waitingMax: number;
  /** In order of arrival. */
  #waiters: Waiter[] = [];
  /** Round of the caller that was served last. */
  #round = 0;

  constructor(options: { concurrency: number; waitingMax: number }) {
    this.#free = options.concurrency;
    this.#waitingMax = options.waitingMax;
  }

  /**
   * Resolves with true when the caller has a slot, which it must release exactly once; with false if the queue is full
   * of callers with an earlier round, or when one of an earlier round takes its place.
   */
  acquire({ group, failures }: SlotRequest): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve(true);
    }
    const waitingOfGroup = this.#waiters.filter((waiter) => waiter.group === group).length;
    const round = this.#round + 1 + waitingOfGroup + Math.min(failures, PENALTY_ROUNDS_MAX);
    if (this.#waiters.length >= this.#waitingMax && !this.#evictLaterThan(round))
      return Promise.resolve(false);
    return new Promise((admit) => this.#waiters.push({ group, round, admit }));
  }

  release(): void {
    const next = this.#waiters.reduce<Waiter | null>(
      (first, waiter) => (first === null || waiter.round < first.round ? waiter : first),
      null,
    );
    if (next === null) {
      this.#free += 1;
      return;
    }
    this.#round = next.round;
    this.#remove(next);
    next.admit(true);
  }

  /** Evicts the waiter of the latest round. Returns false if none has a later round than `round`. */
  #evictLaterThan(round: number): boolean {
    const last = this.#waiters.reduce<Waiter | null>(
      (latest, waiter) => (waiter.round >= (latest?.round ?? round + 1) ? waiter : latest),
      null,
    );
    if (last === null) return false;
    this.#remove(last);
    last.admit(false);
    return true;
  }

  #remove(removed: Waiter): void {
    this.#waiters = this.#waiters.filter((waiter) => waiter !== removed);
  }
}
