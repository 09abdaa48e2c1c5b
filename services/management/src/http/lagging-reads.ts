import { type Queryable, Replica } from '@runhook/database';
import type { Lifecycle, Logger } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';
import type { ManagementMetrics } from '../metrics.ts';
import type { Settings } from '../settings.ts';
import type { AccountRequest, Endpoint } from './endpoint.ts';

/** Must exceed the number of accounts and callers that write within the maximum lag. */
const WRITERS_MAX = 50_000;

type Asking = Pick<AccountRequest, 'account' | 'principal'>;

/**
 * Chooses the database for lists, counts and statistics: the replica, if it exists and shows all changes that the
 * caller made through this process. Authentication and other reads that must not lag use the primary
 * (docs/adr/0048-replica-reads.md).
 */
export class LaggingReads {
  readonly #primary: Queryable;
  readonly #replica: Replica | null;
  /** Time of the last change by an account, or by a caller who reports runs. */
  readonly #wroteAtMs: LRUCache<string, number>;

  constructor(primary: Queryable, replica: Replica | null) {
    this.#primary = primary;
    this.#replica = replica;
    // LRUCache allocates all entries at once: 1 MB, which is useless without a replica.
    this.#wroteAtMs = new LRUCache({ max: replica === null ? 1 : WRITERS_MAX });
  }

  of(asking: Asking): Queryable {
    if (this.#replica === null) return this.#primary;
    const times = [accountKey(asking), callerKey(asking)].map((key) => this.#wroteAtMs.get(key) ?? 0);
    return this.#replica.reader(Math.max(...times));
  }

  /** For background reads: cached counts and polls for changes. */
  get ofNobody(): Queryable {
    return this.#replica?.reader() ?? this.#primary;
  }

  /**
   * Must be called after the work of a request, even if it failed. Reports of runs arrive constantly, so they count
   * only for the runner itself and not for its account.
   */
  noteWrite(endpoint: Endpoint, asking: Asking): void {
    if (this.#replica === null || endpoint.method === 'GET') return;
    const isReport = 'isCommittedTogether' in endpoint;
    this.#wroteAtMs.set(isReport ? callerKey(asking) : accountKey(asking), performance.now());
  }
}

function accountKey({ account }: Asking): string {
  return `account ${account.id}`;
}

function callerKey({ account, principal }: Asking): string {
  const who = principal.kind === 'user' ? `user ${principal.userId}` : `token ${principal.tokenId}`;
  return `${who} ${account.id}`;
}

interface ReadsSurroundings {
  settings: Pick<Settings, 'databaseUrl' | 'databaseReplicaUrl' | 'databaseReplicaMaxLagMs'>;
  logger: Logger;
  lifecycle: Lifecycle;
  metrics: Pick<ManagementMetrics, 'replicaReads' | 'measureReplica'>;
}

/** Opens the replica. If it is unavailable or lags, the service stays ready and reads from the primary. */
export function openLaggingReads(
  { settings, logger, lifecycle, metrics }: ReadsSurroundings,
  primary: Queryable,
): LaggingReads {
  const {
    databaseUrl: primaryUrl,
    databaseReplicaUrl: replicaUrl,
    databaseReplicaMaxLagMs: lagMaxMs,
  } = settings;
  if (replicaUrl === undefined) return new LaggingReads(primary, null);
  const replica = new Replica({
    primaryUrl,
    replicaUrl,
    lagMaxMs,
    primary,
    onRead: (server) => metrics.replicaReads.inc({ server }),
    onChange(state, err) {
      if (state === 'used') logger.info('lists are read from the replica');
      else logger.warn({ state, err }, 'lists are read from the primary until the replica is there');
    },
    onConnectionError: (err) => logger.warn({ err }, 'an idle connection to the replica broke'),
  });
  metrics.measureReplica(() => replica.lagMs);
  lifecycle.onClose('replica', () => replica.close());
  return new LaggingReads(primary, replica);
}
