import { TooManyRequestsError, UnavailableError } from './errors.ts';

export interface AccountPlacesOptions {
  /** For all accounts together. */
  placesMax: number;
  /** Places that one account may have. */
  shareMax: number;
  /** Requests that one account may have here, those in line included. */
  hereMax: number;
  waitMs: number;
  /** Told of each request that was sent away. */
  onRefused?: () => void;
}

/** How many of a pool's connections serve requests: some are left for finding out who calls, and for the relay. */
export function placesOf(connectionsMax: number): Pick<AccountPlacesOptions, 'placesMax' | 'shareMax'> {
  const placesMax = Math.max(2, connectionsMax - 2);
  return { placesMax, shareMax: Math.max(1, Math.floor(placesMax * 0.75)) };
}

const RETRY_AFTER_SECONDS = 1;

interface Account {
  /** All that are here: at work, in line, or beside the places. */
  presentCount: number;
  workingCount: number;
  /** Each begins one that waits, the first come first. */
  line: (() => void)[];
}

/**
 * Requests work side by side in so many places as the pool of connections bears, and no account has all of them: its
 * requests beyond its share wait in a line of its own, without a connection, while others pass. A place that becomes
 * free goes to the account that has the fewest, in turn where they have as many.
 */
export class AccountPlaces {
  readonly #options: AccountPlacesOptions;
  readonly #accounts = new Map<number, Account>();
  /** Those with a line; whose turn came last is last. */
  readonly #waiting = new Set<Account>();
  #takenCount = 0;
  #waitingCount = 0;

  constructor(options: AccountPlacesOptions) {
    this.#options = options;
  }

  /** Requests in line, of all accounts. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /**
   * Does the work once the account has a place. Throws a 429 when too many of its requests are here already, and a 503
   * for one whose turn did not come in time: nobody waits for its answer any more.
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

  /** As {@link run}, for work that needs no place, since it shares a connection: it counts among those that are here. */
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
