import type { JobRunEvent } from '@runhook/contract';

/** Length of an event for one permit, in UTF-16 code units. The longest event of the contract needs 33 permits. */
export const PERMIT_CHARACTERS = 8_192;

/** Returns the length of an event's messages in UTF-16 code units; its other fields are short. */
export function messageCharacters({ data }: Pick<JobRunEvent, 'data'>): number {
  // Data that cannot be read has neither.
  const { runStatusMessage = '', runReason = '' } = data;
  return runStatusMessage.length + runReason.length;
}

/** Returns the number of permits of an attempt, which keeps the event and a body of this length in memory. */
export function permitsOf(event: Pick<JobRunEvent, 'data'>): number {
  return 1 + Math.floor(messageCharacters(event) / PERMIT_CHARACTERS);
}

/**
 * Capacity that accounts share. An account may have as much as is still free: one account gets half, two get a third
 * each, and a further one always finds some. Alone, one use may exceed that.
 */
export class SharedCapacity {
  readonly #max: number;
  readonly #byAccount = new Map<number, number>();
  #used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get isUnused(): boolean {
    return this.#used === 0;
  }

  /** Returns the amount that the account may enter now. */
  free(accountId: number): number {
    return this.#max - this.#used - (this.#byAccount.get(accountId) ?? 0);
  }

  isFree(accountId: number, amount: number): boolean {
    const isFirst = !this.#byAccount.has(accountId);
    return this.free(accountId) >= (isFirst ? 1 : amount);
  }

  enter(accountId: number, amount: number): void {
    this.#used += amount;
    const used = (this.#byAccount.get(accountId) ?? 0) + amount;
    if (used > 0) this.#byAccount.set(accountId, used);
    else this.#byAccount.delete(accountId);
  }

  leave(accountId: number, amount: number): void {
    this.enter(accountId, -amount);
  }
}

interface Waiter {
  count: number;
  resolve: (permits: number) => void;
}

/** Events of an account that wait for permits, in order. */
interface WaitingAccount {
  waiters: Set<Waiter>;
  /** Defers them once the account has released no permit for `idleMs`: its endpoints do not respond. */
  timer: NodeJS.Timeout;
}

/** Bounds the memory of attempts in flight, over all accounts and for each. */
export class Permits {
  readonly #capacity: SharedCapacity;
  readonly #waitersMax: number;
  readonly #idleMs: number;
  readonly #waiting = new Map<number, WaitingAccount>();

  /**
   * @param waitersMax maximum number of waiting events of an account
   * @param idleMs time after which they are deferred if the account releases no permit
   */
  constructor(max: number, waitersMax: number, idleMs: number) {
    this.#capacity = new SharedCapacity(max);
    this.#waitersMax = waitersMax;
    this.#idleMs = idleMs;
  }

  /** Returns the number of permits that the account may acquire now in several calls: half of those that are free to one. */
  free(accountId: number): number {
    return Math.ceil(this.#capacity.free(accountId) / 2);
  }

  /** Returns the number of acquired permits: `count`, or 0. */
  tryAcquire(accountId: number, count: number): number {
    if (this.#waiting.has(accountId) || !this.#capacity.isFree(accountId, count)) return 0;
    this.#capacity.enter(accountId, count);
    return count;
  }

  /** Waits behind other events of the account. Resolves to 0 if too many of them wait, or `idleMs` are over. */
  async acquire(accountId: number, count: number): Promise<number> {
    const acquired = this.tryAcquire(accountId, count);
    if (acquired === count) return acquired;
    const { waiters } = this.#waiting.get(accountId) ?? this.#beginWaiting(accountId);
    if (waiters.size >= this.#waitersMax) return 0;
    return await new Promise((resolve) => waiters.add({ count, resolve }));
  }

  #beginWaiting(accountId: number): WaitingAccount {
    const waiters = new Set<Waiter>();
    const timer = setTimeout(() => {
      this.#waiting.delete(accountId);
      for (const { resolve } of waiters) resolve(0);
    }, this.#idleMs);
    const account = { waiters, timer };
    this.#waiting.set(accountId, account);
    return account;
  }

  release(accountId: number, count: number): void {
    this.#capacity.leave(accountId, count);
    this.#waiting.get(accountId)?.timer.refresh();
    for (const [id, account] of this.#waiting) this.#serve(id, account);
  }

  #serve(accountId: number, { waiters, timer }: WaitingAccount): void {
    for (const waiter of waiters) {
      if (!this.#capacity.isFree(accountId, waiter.count)) return;
      this.#capacity.enter(accountId, waiter.count);
      waiters.delete(waiter);
      waiter.resolve(waiter.count);
    }
    clearTimeout(timer);
    this.#waiting.delete(accountId);
  }
}
