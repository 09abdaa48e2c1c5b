import { randomInt } from 'node:crypto';
import { TooManyRequestsError, UnavailableError } from './errors.ts';

export interface BulkheadOptions {
  /** Slots of all accounts together; a slot permits one request that uses the database. */
  slotsMax: number;
  /** Slots that one account may occupy. */
  shareMax: number;
  /** Requests that one account may have in this process, including those that wait for a slot. */
  maxInFlight: number;
  waitMs: number;
  /** Called for each request that is rejected with a 429. */
  onRejected?: () => void;
}

/** Returns the limits for a connection pool. Two connections of four or more remain for authentication and the relay. */
export function bulkheadLimits(connectionsMax: number): Pick<BulkheadOptions, 'slotsMax' | 'shareMax'> {
  const slotsMax = Math.max(2, connectionsMax - 2);
  return { slotsMax, shareMax: Math.max(1, Math.floor(slotsMax * 0.75)) };
}

/** Spread, so that rejected callers do not all return in the same second. */
const RETRY_AFTER_SECONDS = { min: 1, max: 3 };

interface Account {
  /** All requests of the account: with a slot, waiting for one, or without need of one. */
  requestCount: number;
  slotCount: number;
  /** Callbacks that start the waiting requests, in order of arrival. */
  waiters: (() => void)[];
}

/**
 * Bulkhead of accounts, or of callers whose account is not known yet: the size of the connection pool limits the
 * requests that run concurrently, and no account may occupy all slots. The requests beyond an account's share wait in
 * its own queue, without a connection, while others proceed. A free slot goes to the waiting account with the fewest
 * slots, in rotation among equals.
 */
export class Bulkhead<Key = number> {
  readonly #options: BulkheadOptions;
  readonly #accounts = new Map<Key, Account>();
  /** Accounts with waiting requests; the one that was served last is last. */
  readonly #waitingAccounts = new Set<Account>();
  #occupiedCount = 0;
  #waitingCount = 0;

  constructor(options: BulkheadOptions) {
    this.#options = options;
  }

  /** Number of waiting requests of all accounts. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /**
   * Runs the work once the account has a slot. Throws a 429 if the account has `maxInFlight` requests, and a 503 if no
   * slot became free within `waitMs`.
   */
  run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    return this.#admit(key, async (account) => {
      if (this.#hasSlotFor(account)) this.#occupySlot(account);
      else await this.#waitForSlot(account);
      try {
        return await work();
      } finally {
        this.#releaseSlot(account);
      }
    });
  }

  /** Runs work that needs no slot, because it shares a connection. It counts towards `maxInFlight`. */
  runWithoutSlot<T>(key: Key, work: () => Promise<T>): Promise<T> {
    return this.#admit(key, work);
  }

  /** Throws a 429 if the account has `maxInFlight` requests. */
  requireCapacity(key: Key): void {
    const count = this.#accounts.get(key)?.requestCount ?? 0;
    if (count < this.#options.maxInFlight) return;
    this.#options.onRejected?.();
    const { min, max } = RETRY_AFTER_SECONDS;
    throw new TooManyRequestsError(randomInt(min, max + 1));
  }

  async #admit<T>(key: Key, work: (account: Account) => Promise<T>): Promise<T> {
    this.requireCapacity(key);
    const account = this.#accounts.get(key) ?? { requestCount: 0, slotCount: 0, waiters: [] };
    this.#accounts.set(key, account);
    account.requestCount += 1;
    try {
      return await work(account);
    } finally {
      account.requestCount -= 1;
      if (account.requestCount === 0) this.#accounts.delete(key);
    }
  }

  #hasSlotFor(account: Account): boolean {
    const { slotsMax, shareMax } = this.#options;
    return this.#occupiedCount < slotsMax && account.slotCount < shareMax;
  }

  #occupySlot(account: Account): void {
    account.slotCount += 1;
    this.#occupiedCount += 1;
  }

  #waitForSlot(account: Account): Promise<void> {
    return new Promise((resolve, reject) => {
      const removeWaiter = () => {
        clearTimeout(timer);
        account.waiters.splice(account.waiters.indexOf(start), 1);
        if (account.waiters.length === 0) this.#waitingAccounts.delete(account);
        this.#waitingCount -= 1;
      };
      const start = () => {
        removeWaiter();
        this.#occupySlot(account);
        resolve();
      };
      const timer = setTimeout(() => {
        removeWaiter();
        reject(new UnavailableError());
      }, this.#options.waitMs);
      account.waiters.push(start);
      this.#waitingAccounts.add(account);
      this.#waitingCount += 1;
    });
  }

  #nextAccount(): Account | null {
    let fewest: Account | null = null;
    for (const account of this.#waitingAccounts) {
      if (!this.#hasSlotFor(account)) continue;
      if (account.slotCount === 0) return account;
      if (fewest === null || account.slotCount < fewest.slotCount) fewest = account;
    }
    return fewest;
  }

  #releaseSlot(account: Account): void {
    account.slotCount -= 1;
    this.#occupiedCount -= 1;
    for (let next = this.#nextAccount(); next !== null; next = this.#nextAccount()) {
      this.#waitingAccounts.delete(next);
      this.#waitingAccounts.add(next);
      next.waiters[0]?.();
    }
  }
}
