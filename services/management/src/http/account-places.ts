import { TooManyRequestsError, UnavailableError } from './errors.ts';

/**
 * Requests work side by side in so many places as the pool of connections bears, and no account has all of them: its
 * requests beyond its share wait in a line of its own, without a connection, while others pass. A place that becomes
 * free goes to the account that has the fewest, in turn where they have as many.
 */
export interface AccountPlaces {
  /**
   * Does the work once the account has a place. Throws a 429 when too many of its requests are here already, and a 503
   * for one whose turn did not come in time: nobody waits for its answer any more.
   */
  run<T>(accountId: number, work: () => Promise<T>): Promise<T>;
  /** Requests in line, of all accounts. */
  readonly waitingCount: number;
}

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
  workingCount: number;
  /** Each begins one that waits, the first come first. */
  line: (() => void)[];
}

export function createAccountPlaces(options: AccountPlacesOptions): AccountPlaces {
  const { placesMax, shareMax, hereMax, waitMs, onRefused } = options;
  const accounts = new Map<number, Account>();
  /** Those with a line; whose turn came last is last. */
  const waiting = new Set<Account>();
  let takenCount = 0;
  let waitingCount = 0;

  const hasRoomFor = (account: Account) => takenCount < placesMax && account.workingCount < shareMax;

  function begin(account: Account): void {
    account.workingCount += 1;
    takenCount += 1;
  }

  function turn(account: Account): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        account.line.splice(account.line.indexOf(beginNow), 1);
        if (account.line.length === 0) waiting.delete(account);
        waitingCount -= 1;
      };
      const beginNow = () => {
        leave();
        begin(account);
        resolve();
      };
      const timer = setTimeout(() => {
        leave();
        reject(new UnavailableError());
      }, waitMs);
      account.line.push(beginNow);
      waiting.add(account);
      waitingCount += 1;
    });
  }

  function next(): Account | null {
    let fewest: Account | null = null;
    for (const account of waiting) {
      if (!hasRoomFor(account)) continue;
      if (fewest === null || account.workingCount < fewest.workingCount) fewest = account;
    }
    return fewest;
  }

  function end(account: Account): void {
    account.workingCount -= 1;
    takenCount -= 1;
    for (let one = next(); one !== null; one = next()) {
      waiting.delete(one);
      waiting.add(one);
      one.line[0]?.();
    }
  }

  return {
    get waitingCount() {
      return waitingCount;
    },
    async run(accountId, work) {
      const account = accounts.get(accountId) ?? { workingCount: 0, line: [] };
      accounts.set(accountId, account);
      if (account.workingCount + account.line.length >= hereMax) {
        onRefused?.();
        throw new TooManyRequestsError(RETRY_AFTER_SECONDS);
      }
      try {
        if (hasRoomFor(account)) begin(account);
        else await turn(account);
        try {
          return await work();
        } finally {
          end(account);
        }
      } finally {
        if (account.workingCount === 0 && account.line.length === 0) accounts.delete(accountId);
      }
    },
  };
}
