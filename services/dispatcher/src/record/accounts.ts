import { type EventFilters, type EventType, filterSets, IdSet } from '@runhook/contract';
import { type Queryable, runStatement } from '@runhook/database';
import { LRUCache } from 'lru-cache';
import type { AccountSubscriptions, CachedSubscription } from '../policy/next-step.ts';
import { TARGET_COLUMNS, type TargetRow, toTarget } from '../target.ts';

/** An account with the versions of its active subscriptions, which identify the cached subscriptions that are current. */
export interface AccountVersions extends Omit<AccountSubscriptions, 'subscriptions'> {
  /** `<id> <version>` of each subscription. */
  subscriptionVersions: readonly string[];
}

interface VersionsRow extends Pick<AccountVersions, 'version' | 'plan' | 'deployment'> {
  [column: string]: unknown;
  id: string;
  /** Separated by commas; null if there are none. */
  versions: string | null;
}

const VERSIONED_ID = `s.id || ' ' || s.version`;
/** Webhooks that have only a feed get no deliveries. */
const IS_ACTIVE = "s.active AND s.deleted_at IS NULL AND s.client_url <> ''";

// Aggregated as one text, because the driver's parsing of an array of a thousand elements costs several times as much.
const SELECT_VERSIONS = `
  SELECT a.id, a.version, a.plan, a.deployment,
    (SELECT string_agg(${VERSIONED_ID}, ',') FROM subscriptions s WHERE s.account_id = a.id AND ${IS_ACTIVE}) AS versions
  FROM accounts a
  WHERE a.id = ANY($1::bigint[])`;

/** Loads the versions of the accounts by one query, in the order of the ids; null for a missing account. */
export async function loadAccountVersions(
  database: Queryable,
  accountIds: readonly number[],
): Promise<(AccountVersions | null)[]> {
  const rows = await runStatement<VersionsRow>(database, SELECT_VERSIONS, [accountIds], 'account-versions');
  const accounts = new Map<number, AccountVersions>();
  for (const { id, version, plan, deployment, versions } of rows) {
    const accountId = Number(id);
    const subscriptionVersions = versions?.split(',') ?? [];
    accounts.set(accountId, { accountId, version, plan, deployment, subscriptionVersions });
  }
  return accountIds.map((accountId) => accounts.get(accountId) ?? null);
}

interface SubscriptionRow extends TargetRow {
  id: string;
  versioned_id: string;
  name: string;
  event_types: EventType[];
  /** An array in PostgreSQL's text form. */
  job_ids: string;
  filters: EventFilters | null;
  full: boolean;
}

const SELECT_SUBSCRIPTIONS = `
  SELECT s.id, ${VERSIONED_ID} AS versioned_id, s.name, s.event_types, s.job_ids::text AS job_ids, s.filters,
    s.lane_full_since IS NOT NULL AS full, ${TARGET_COLUMNS}
  FROM subscriptions s JOIN accounts a ON a.id = s.account_id
  WHERE s.id = ANY($1::text[]) AND ${IS_ACTIVE}`;

/** Loads the subscriptions by one query, in the order of the ids; null for one that is no longer active. */
export async function loadSubscriptions(
  database: Queryable,
  ids: readonly string[],
): Promise<(CachedSubscription | null)[]> {
  const rows = await runStatement<SubscriptionRow>(
    database,
    SELECT_SUBSCRIPTIONS,
    [ids],
    'load-subscriptions',
  );
  const subscriptions = new Map<string, CachedSubscription>();
  for (const row of rows) {
    const { id, versioned_id: versionedId, name, event_types: eventTypes, full: isFull } = row;
    const target = toTarget(row);
    if (target === null) continue;
    const jobIds = IdSet.fromArrayText(row.job_ids);
    const filters = filterSets(row.filters);
    subscriptions.set(id, { id, versionedId, name, eventTypes, jobIds, filters, isFull, target });
  }
  return ids.map((id) => subscriptions.get(id) ?? null);
}

/** Approximate size of an object with its properties and the references to it. */
const OBJECT_BYTES = 400;

/** Returns an upper estimate of the memory of a cached account: two bytes for each character. */
export function estimateBytes({ subscriptions }: Pick<AccountSubscriptions, 'subscriptions'>): number {
  let bytes = OBJECT_BYTES;
  for (const { id, versionedId, name, jobIds, filters, target } of subscriptions) {
    const { clientUrl, endpoint, secret, signatureKey, signatureHeader, headersCiphertext } = target;
    const { format, formatOptionsCiphertext, updatedAt } = target;
    const texts = [
      id,
      versionedId,
      name,
      clientUrl,
      endpoint,
      secret.current,
      secret.rotation?.next,
      signatureKey?.current,
      signatureKey?.rotation?.next,
      signatureHeader,
      headersCiphertext,
      format,
      formatOptionsCiphertext,
      updatedAt,
    ];
    bytes += OBJECT_BYTES + jobIds.bytes + (filters === null ? 0 : OBJECT_BYTES + filters.bytes);
    for (const text of texts) bytes += 2 * (text?.length ?? 0);
  }
  return bytes;
}

export interface SubscriptionCacheOptions {
  /** Returns null when there is no such account. */
  loadVersions: (accountId: number) => Promise<AccountVersions | null>;
  /** Returns null when the subscription is no longer active. */
  loadSubscription: (id: string) => Promise<CachedSubscription | null>;
  /** Maximum memory of all cached accounts, by {@link estimateBytes}; the least recently used account is evicted first. */
  bytesMax: number;
}

interface Entry {
  account: AccountSubscriptions;
  /** Whether the account has a newer version. */
  isOutdated: boolean;
}

/**
 * Caches accounts with their subscriptions until a fan-out finds that one has changed. The cache does not poll: before
 * its requests, a fan-out checks in PostgreSQL that the account still has the version of the plan; a caller that finds
 * another version calls `invalidate` and plans again. Then only the subscriptions with changed versions are loaded.
 */
export class SubscriptionCache {
  readonly #options: SubscriptionCacheOptions;
  readonly #entries: LRUCache<number, Entry>;
  readonly #loading = new Map<number, Promise<AccountSubscriptions | null>>();

  constructor(options: SubscriptionCacheOptions) {
    this.#options = options;
    this.#entries = new LRUCache({
      maxSize: options.bytesMax,
      sizeCalculation: ({ account }) => estimateBytes(account),
    });
  }

  /** Returns the account directly if it is cached, otherwise a promise. A missing account is null and is not cached. */
  get(accountId: number): AccountSubscriptions | Promise<AccountSubscriptions | null> {
    const entry = this.#entries.get(accountId);
    if (entry && !entry.isOutdated) return entry.account;
    return this.#loading.get(accountId) ?? this.#loadOnce(accountId, entry?.account);
  }

  /** Marks the cached account as outdated, only if it has this version: it may have been reloaded meanwhile. */
  invalidate({ accountId, version }: Pick<AccountSubscriptions, 'accountId' | 'version'>): void {
    const entry = this.#entries.peek(accountId);
    if (entry?.account.version === version) entry.isOutdated = true;
  }

  /** Shares one load among all callers that need the account meanwhile. */
  #loadOnce(accountId: number, outdated?: AccountSubscriptions): Promise<AccountSubscriptions | null> {
    const loading = this.#load(accountId, outdated).finally(() => this.#loading.delete(accountId));
    this.#loading.set(accountId, loading);
    return loading;
  }

  async #load(accountId: number, outdated?: AccountSubscriptions): Promise<AccountSubscriptions | null> {
    const versions = await this.#options.loadVersions(accountId);
    if (versions === null) {
      this.#entries.delete(accountId);
      return null;
    }
    const { subscriptionVersions, ...account } = versions;
    const cached = reusableSubscriptions(account, outdated);
    const subscriptions: CachedSubscription[] = [];
    const changed: string[] = [];
    for (const versionedId of subscriptionVersions) {
      const unchanged = cached.get(versionedId);
      if (unchanged) subscriptions.push(unchanged);
      else changed.push(versionedId.split(' ', 1)[0] as string);
    }
    for (const loaded of await Promise.all(changed.map(this.#options.loadSubscription)))
      if (loaded !== null) subscriptions.push(loaded);
    const current = { ...account, subscriptions };
    this.#entries.set(accountId, { account: current, isOutdated: false });
    return current;
  }
}

/** Returns reusable subscriptions by `versionedId`: none after a change of plan or deployment, which are in targets. */
function reusableSubscriptions(
  { plan, deployment }: Pick<AccountSubscriptions, 'plan' | 'deployment'>,
  outdated?: AccountSubscriptions,
): Map<string, CachedSubscription> {
  if (outdated?.plan !== plan || outdated.deployment !== deployment) return new Map();
  return new Map(outdated.subscriptions.map((subscription) => [subscription.versionedId, subscription]));
}
