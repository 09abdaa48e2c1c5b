import { TooManyRequestsError, UnavailableError } from './errors.ts';

export interface AccountPlacesOptions {
  /** Slots of all accounts together. */
  placesMax: number;
  /** Slots that one account may occupy. */
  shareMax: number;
  /** Requests that one account may have in this process, including those that wait for a slot. */
  hereMax: number;
  waitMs: number;
  /** Called for each rejected request. */
  onRefused?: () => void;
}

/** Returns the number of slots for a pool. Some connections remain for authentication and for the relay. */
export function placesOf(connectionsMax: number): Pick<AccountPlacesOptions, 'placesMax' | 'shareMax'> {
  const placesMax = Math.max(2, connectionsMax - 2);
  return { placesMax, shareMax: Math.max(1, Math.floor(placesMax * 0.75)) };
}

const RETRY_AFTER_SECONDS = 1;

interface Account {
  /** All requests of the account: with a slot, waiting for one, or without need of one. */
  presentCount: number;
  workingCount: number;
  /** Callbacks that start the waiting requests, in order of arrival. */
  line: (() => void)[];
}

/**
 * Bulkhead of accounts: the size of the connection pool limits the requests that run concurrently, and no account may
 * occupy all slots. The requests beyond an account's share wait in its own queue, without a connection, while others
 * proceed. A free slot goes to the waiting account with the fewest slots, in rotation among equals.
 */
export class AccountPlaces {
  readonly #options: AccountPlacesOptions;
  readonly #accounts = new Map<number, Account>();
  /** Accounts with waiting requests; the one that was served last is last. */
  readonly #waiting = new Set<Account>();
  #takenCount = 0;
  #waitingCount = 0;

  constructor(options: AccountPlacesOptions) {
    this.#options = options;
  }

  /** Number of waiting requests of all accounts. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /**
   * Runs the work once the account has a slot. Throws a 429 if the account has too many requests here, and a 503 if no
   * slot became free before the caller's deadline.
   */
  run<T>(accountId: number, work: () => Promise<T>): Promise<T> {
    return this.#present(accountId, async (account) => {
      if (this.#hasRoomFor(account)) this.#begin(account);
      else await this.#turn(account);
      try {
        return await work();
      } finally {
        this.#end(account);
      }
    });
  }

  /** Runs work that needs no slot, because it shares a connection. It counts towards the requests of the account. */
  beside<T>(accountId: number, work: () => Promise<T>): Promise<T> {
    return this.#present(accountId, work);
  }

  async #present<T>(accountId: number, work: (account: Account) => Promise<T>): Promise<T> {
    const account = this.#accounts.get(accountId) ?? { presentCount: 0, workingCount: 0, line: [] };
    this.#accounts.set(accountId, account);
    if (account.presentCount >= this.#options.hereMax) {
      this.#options.onRefused?.();
      throw new TooManyRequestsError(RETRY_AFTER_SECONDS);
    }
    account.presentCount += 1;
    try {
      return await work(account);
    } finally {
      account.presentCount -= 1;
      if (account.presentCount === 0) this.#accounts.delete(accountId);
    }
  }

  #hasRoomFor(account: Account): boolean {
    const { placesMax, shareMax } = this.#options;
    return this.#takenCount < placesMax && account.workingCount < shareMax;
  }

  #begin(account: Account): void {
    account.workingCount += 1;
    this.#takenCount += 1;
  }

  #turn(account: Account): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        account.line.splice(account.line.indexOf(beginNow), 1);
        if (account.line.length === 0) this.#waiting.delete(account);
        this.#waitingCount -= 1;
      };
      const beginNow = () => {
        leave();
        this.#begin(account);
        resolve();
      };
      const timer = setTimeout(() => {
        leave();
        reject(new UnavailableError());
      }, this.#options.waitMs);
      account.line.push(beginNow);
      this.#waiting.add(account);
      this.#waitingCount += 1;
    });
  }

  #next(): Account | null {
    let fewest: Account | null = null;
    for (const account of this.#waiting) {
      if (!this.#hasRoomFor(account)) continue;
      if (fewest === null || account.workingCount < fewest.workingCount) fewest = account;
    }
    return fewest;
  }

  #end(account: Account): void {
    account.workingCount -= 1;
    this.#takenCount -= 1;
    for (let one = this.#next(); one !== null; one = this.#next()) {
      this.#waiting.delete(one);
      this.#waiting.add(one);
      one.line[0]?.();
    }
  }
}
