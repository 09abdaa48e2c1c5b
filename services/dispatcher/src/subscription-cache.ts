import type { AccountSubscriptions } from './data/account-subscriptions.ts';

/**
 * Accounts with their subscriptions, kept while nobody says that they changed. The cache itself never asks: every
 * fan-out is committed under the condition that the account still has the fingerprint the plan was made with, and
 * whoever is told otherwise calls `forget` and plans again.
 */
export interface SubscriptionCache {
  /** Null when there is no such account; that is not remembered. */
  of(accountId: number): Promise<AccountSubscriptions | null>;
  /** Only what has this fingerprint: somebody else may have loaded the account anew meanwhile. */
  forget(account: Pick<AccountSubscriptions, 'accountId' | 'fingerprint'>): void;
}

export function createSubscriptionCache(options: {
  load: (accountId: number) => Promise<AccountSubscriptions | null>;
  /** How much is kept, in accounts and subscriptions together; what was used longest ago goes first. */
  sizeMax: number;
}): SubscriptionCache {
  const { load, sizeMax } = options;
  const kept = new Map<number, AccountSubscriptions>();
  const loading = new Map<number, Promise<AccountSubscriptions | null>>();
  let size = 0;

  const sizeOf = ({ subscriptions }: AccountSubscriptions) => 1 + subscriptions.length;

  function remove(account: AccountSubscriptions): void {
    kept.delete(account.accountId);
    size -= sizeOf(account);
  }

  function keep(account: AccountSubscriptions): void {
    const former = kept.get(account.accountId);
    if (former) remove(former);
    kept.set(account.accountId, account);
    size += sizeOf(account);
    for (const oldest of kept.values()) {
      if (size <= sizeMax) break;
      remove(oldest);
    }
  }

  async function loadOnce(accountId: number): Promise<AccountSubscriptions | null> {
    try {
      const account = await load(accountId);
      if (account) keep(account);
      return account;
    } finally {
      loading.delete(accountId);
    }
  }

  return {
    async of(accountId) {
      const account = kept.get(accountId);
      if (account) {
        // A Map keeps the order of insertion: the end is what was used last.
        kept.delete(accountId);
        kept.set(accountId, account);
        return account;
      }
      const running = loading.get(accountId) ?? loadOnce(accountId);
      if (!kept.has(accountId)) loading.set(accountId, running);
      return await running;
    },
    forget({ accountId, fingerprint }) {
      const account = kept.get(accountId);
      if (account?.fingerprint === fingerprint) remove(account);
    },
  };
}
