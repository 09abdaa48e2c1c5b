import { type Queryable, Replica } from '@runhook/database';
import type { Lifecycle, Logger } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';
import type { ManagementMetrics } from '../metrics.ts';
import type { Settings } from '../settings.ts';
import type { AccountRequest, Endpoint } from './endpoint.ts';

/**
 * Number of accounts and callers whose last change is cached. Must exceed the number of those that write within the
 * maximum lag.
 */
const WRITERS_MAX = 50_000;

type Requester = Pick<AccountRequest, 'account' | 'principal'>;

/**
 * Chooses the database for lists, counts and statistics: the replica, if it exists and shows all changes of the account
 * and all reports of the caller that this process handled. Authentication and other reads that must not lag use the
 * primary (docs/adr/0048-replica-reads.md).
 */
export class ReplicaReads {
  readonly #primary: Queryable;
  readonly #replica: Replica | null;
  /** Time of the last change by an account, or by a caller who reports runs. */
  readonly #lastWriteAtMs: LRUCache<string, number>;

  constructor(primary: Queryable, replica: Replica | null) {
    this.#primary = primary;
    this.#replica = replica;
    // LRUCache allocates all entries at once: 1 MB, which is useless without a replica.
    this.#lastWriteAtMs = new LRUCache({ max: replica === null ? 1 : WRITERS_MAX });
  }

  databaseFor(requester: Requester): Queryable {
    if (this.#replica === null) return this.#primary;
    const times = [accountKey(requester), callerKey(requester)].map(
      (key) => this.#lastWriteAtMs.get(key) ?? 0,
    );
    return this.#replica.reader(Math.max(...times));
  }

  /** For background reads: cached counts and polls for changes. */
  get background(): Queryable {
    return this.#replica?.reader() ?? this.#primary;
  }

  /**
   * Must be called after the work of a request, even if it failed. Reports of runs arrive constantly, so they count
   * only for the runner itself and not for its account.
   */
  recordWrite(endpoint: Endpoint, requester: Requester): void {
    if (this.#replica === null || endpoint.method === 'GET') return;
    const isReport = 'isBatched' in endpoint;
    this.#lastWriteAtMs.set(isReport ? callerKey(requester) : accountKey(requester), performance.now());
  }
}

function accountKey({ account }: Requester): string {
  return `account ${account.id}`;
}

function callerKey({ account, principal }: Requester): string {
  const principalKey = principal.kind === 'user' ? `user ${principal.userId}` : `token ${principal.tokenId}`;
  return `${principalKey} ${account.id}`;
}

interface ReplicaReadsContext {
  settings: Pick<Settings, 'databaseUrl' | 'databaseReplicaUrl' | 'databaseReplicaMaxLagMs'>;
  logger: Logger;
  lifecycle: Lifecycle;
  metrics: Pick<ManagementMetrics, 'replicaReads' | 'measureReplica'>;
}

/** Opens the replica. If it is unavailable or lags, the service stays ready and reads from the primary. */
export function openReplicaReads(
  { settings, logger, lifecycle, metrics }: ReplicaReadsContext,
  primary: Queryable,
): ReplicaReads {
  const {
    databaseUrl: primaryUrl,
    databaseReplicaUrl: replicaUrl,
    databaseReplicaMaxLagMs: lagMaxMs,
  } = settings;
  if (replicaUrl === undefined) return new ReplicaReads(primary, null);
  const replica = new Replica({
    primaryUrl,
    replicaUrl,
    lagMaxMs,
    primary,
    onRead: (server) => metrics.replicaReads.inc({ server }),
    onChange(state, err) {
      if (state === 'used') logger.info('reading lists from the replica');
      else logger.warn({ state, err }, 'replica unavailable or lagging, reading lists from the primary');
    },
    onConnectionError: (err) => logger.warn({ err }, 'idle replica connection broke; the pool replaces it'),
  });
  metrics.measureReplica(() => replica.lagMs);
  lifecycle.onClose('replica', () => replica.close());
  return new ReplicaReads(primary, replica);
}
