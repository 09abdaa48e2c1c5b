import type { EventType } from '@runhook/contract';
import { type Queryable, runStatement } from '@runhook/database';
import { LRUCache } from 'lru-cache';
import type { AccountSubscriptions } from '../policy/next-step.ts';
import { TARGET_COLUMNS, type TargetRow, targetOf } from '../target.ts';

interface Row extends TargetRow {
  account_id: string;
  version: string;
  id: string | null;
  name: string;
  event_types: EventType[];
  job_ids: string[];
  full: boolean;
}

const SELECT = `
  SELECT a.id AS account_id, a.version, s.id, s.name, s.event_types, s.job_ids::text[] AS job_ids,
    s.lane_full_since IS NOT NULL AS full, ${TARGET_COLUMNS}
  FROM accounts a
  LEFT JOIN subscriptions s ON s.account_id = a.id AND s.active AND s.deleted_at IS NULL
  WHERE a.id = ANY($1::bigint[])`;

/** One query for all; the answer is in the order of the ids, null where there is no such account. */
export async function loadAccountSubscriptions(
  database: Queryable,
  accountIds: readonly number[],
): Promise<(AccountSubscriptions | null)[]> {
  const rows = await runStatement<Row>(database, SELECT, [accountIds], 'load-account-subscriptions');
  const accounts = new Map<number, AccountSubscriptions>();
  for (const row of rows) {
    const accountId = Number(row.account_id);
    const { version, plan, deployment } = row;
    const account = accounts.get(accountId) ?? {
      accountId,
      version,
      plan,
      deployment,
      subscriptions: [],
    };
    accounts.set(accountId, account);
    const target = targetOf(row);
    if (row.id === null || target === null) continue;
    const { id, name, event_types: eventTypes, job_ids: jobIds, full: isFull } = row;
    account.subscriptions.push({ id, name, eventTypes, jobIds, isFull, target });
  }
  return accountIds.map((accountId) => accounts.get(accountId) ?? null);
}

export interface SubscriptionCacheOptions {
  load: (accountId: number) => Promise<AccountSubscriptions | null>;
  /** How much is kept, in accounts and subscriptions together; what was used longest ago goes first. */
  sizeMax: number;
}

/**
 * Accounts with their subscriptions, kept while nobody says that they changed. The cache itself never asks: every
 * fan-out is committed under the condition that the account still has the version that the plan was made with, and
 * whoever finds that it has another calls `forget` and plans again.
 */
export class SubscriptionCache {
  readonly #load: SubscriptionCacheOptions['load'];
  readonly #kept: LRUCache<number, AccountSubscriptions>;
  readonly #loading = new Map<number, Promise<AccountSubscriptions | null>>();

  constructor({ load, sizeMax }: SubscriptionCacheOptions) {
    this.#load = load;
    this.#kept = new LRUCache({
      maxSize: sizeMax,
      sizeCalculation: ({ subscriptions }) => 1 + subscriptions.length,
    });
  }

  /** At once if it is known. Null when there is no such account; that is not remembered. */
  of(accountId: number): AccountSubscriptions | Promise<AccountSubscriptions | null> {
    return this.#kept.get(accountId) ?? this.#loading.get(accountId) ?? this.#loadOnce(accountId);
  }

  /** Only what has this version: somebody else may have loaded the account anew meanwhile. */
  forget({ accountId, version }: Pick<AccountSubscriptions, 'accountId' | 'version'>): void {
    if (this.#kept.peek(accountId)?.version === version) this.#kept.delete(accountId);
  }

  /** For all who ask meanwhile. */
  #loadOnce(accountId: number): Promise<AccountSubscriptions | null> {
    const loading = this.#load(accountId)
      .then((account) => {
        if (account) this.#kept.set(accountId, account);
        return account;
      })
      .finally(() => this.#loading.delete(accountId));
    this.#loading.set(accountId, loading);
    return loading;
  }
}
