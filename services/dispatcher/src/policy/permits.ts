import type { JobRunEvent } from '@runhook/contract';

/** Length of the messages of an event for which an attempt needs one more permit, in UTF-16 code units. */
export const PERMIT_CHARACTERS = 8_192;
/** Permits of an attempt of the longest event that the contract permits. */
const PERMITS_OF_LONGEST = 33;

/** Returns the length of an event's messages in UTF-16 code units; its other fields are short. */
export function messageCharacters({ data }: Pick<JobRunEvent, 'data'>): number {
  // Data that cannot be read has neither.
  const { runStatusMessage = '', runReason = '' } = data;
  return runStatusMessage.length + runReason.length;
}

/** Returns the number of permits of an attempt, which keeps the event's messages and the body with them in memory. */
export function permitsOf(event: Pick<JobRunEvent, 'data'>): number {
  return 1 + Math.floor(messageCharacters(event) / PERMIT_CHARACTERS);
}

/**
 * Capacity that accounts share. An account may have as much as is still free: one account gets half, two get a third
 * each, and a further one still finds some. The first use of an account may exceed its share.
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

  isUsedBy(accountId: number): boolean {
    return this.#byAccount.has(accountId);
  }

  isFree(accountId: number, amount: number): boolean {
    return this.free(accountId) >= (this.isUsedBy(accountId) ? amount : 1);
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
  slots: number;
  resolve: (permits: number) => void;
  /** Ends its wait without permits after `timeoutMs`. */
  timer?: NodeJS.Timeout;
}

/** Events of an account that wait for permits, in order. */
interface WaitingAccount {
  waiters: Set<Waiter>;
  /** Ends their wait without permits once the account has released none for `idleMs`: its endpoints do not respond. */
  timer: NodeJS.Timeout;
}

/** Bounds the memory of attempts in flight, over all accounts and for each. */
export class Permits {
  readonly #max: number;
  readonly #capacity: SharedCapacity;
  readonly #waitingSlots: SharedCapacity;
  readonly #idleMs: number;
  readonly #waiting = new Map<number, WaitingAccount>();

  /**
   * @param waitingSlotsMax slots for events in flight that waiting events of all accounts may have
   * @param idleMs time after which waiting events of an account are deferred if it releases no permit
   */
  constructor(max: number, waitingSlotsMax: number, idleMs: number) {
    this.#max = max;
    this.#capacity = new SharedCapacity(max);
    this.#waitingSlots = new SharedCapacity(waitingSlotsMax);
    this.#idleMs = idleMs;
  }

  /** Returns the permits of each attempt of an event: fewer than `permitsOf` if the sum of all exceeds `max` / 2. */
  forEach(event: Pick<JobRunEvent, 'data'>, attemptCount: number): number {
    return Math.max(1, Math.min(permitsOf(event), Math.floor(this.#max / 2 / attemptCount)));
  }

  /**
   * Returns the number of permits that the account may acquire now in several calls: half of those that are free to it,
   * and 0 if an attempt of the longest event could not have its permits.
   */
  free(accountId: number): number {
    const requiredMin = this.#capacity.isUsedBy(accountId) ? Math.min(PERMITS_OF_LONGEST, this.#max / 4) : 1;
    const free = this.#capacity.free(accountId);
    return free < requiredMin ? 0 : Math.ceil(free / 2);
  }

  /** Returns the number of acquired permits: `count`, or 0 if these are not free or events of the account wait. */
  tryAcquire(accountId: number, count: number): number {
    if (this.#waiting.has(accountId) || !this.#capacity.isFree(accountId, count)) return 0;
    this.#capacity.enter(accountId, count);
    return count;
  }

  /**
   * Waits behind other events of the account. Resolves to `count`; to 0 if too many wait, or at a timeout.
   * @param slots slots for events in flight that the event has
   * @param timeoutMs maximum wait; only `idleMs` limits it when omitted
   */
  async acquire(accountId: number, count: number, slots: number, timeoutMs?: number): Promise<number> {
    const acquired = this.tryAcquire(accountId, count);
    if (acquired === count) return acquired;
    if (!this.#waitingSlots.isFree(accountId, slots)) return 0;
    this.#waitingSlots.enter(accountId, slots);
    const account = this.#waiting.get(accountId) ?? this.#beginWaiting(accountId);
    return await new Promise((resolve) => {
      const waiter: Waiter = { count, slots, resolve };
      account.waiters.add(waiter);
      if (timeoutMs === undefined) return;
      waiter.timer = setTimeout(() => {
        account.waiters.delete(waiter);
        this.#end(accountId, waiter, 0);
        // The events behind it may need fewer permits.
        this.#serve(accountId, account);
      }, timeoutMs);
    });
  }

  #beginWaiting(accountId: number): WaitingAccount {
    const waiters = new Set<Waiter>();
    const timer = setTimeout(() => {
      this.#waiting.delete(accountId);
      for (const waiter of waiters) this.#end(accountId, waiter, 0);
    }, this.#idleMs);
    const account = { waiters, timer };
    this.#waiting.set(accountId, account);
    return account;
  }

  release(accountId: number, count: number): void {
    if (count === 0) return;
    this.#capacity.leave(accountId, count);
    this.#waiting.get(accountId)?.timer.refresh();
    for (const [id, account] of this.#waiting) this.#serve(id, account);
  }

  #serve(accountId: number, { waiters, timer }: WaitingAccount): void {
    for (const waiter of waiters) {
      if (!this.#capacity.isFree(accountId, waiter.count)) return;
      this.#capacity.enter(accountId, waiter.count);
      waiters.delete(waiter);
      this.#end(accountId, waiter, waiter.count);
    }
    clearTimeout(timer);
    this.#waiting.delete(accountId);
  }

  #end(accountId: number, { slots, resolve, timer }: Waiter, permits: number): void {
    clearTimeout(timer);
    this.#waitingSlots.leave(accountId, slots);
    resolve(permits);
  }
}
