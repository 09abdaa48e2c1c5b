import { type Queryable, Replica } from '@runhook/database';
import type { Lifecycle, Logger } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';
import type { ManagementMetrics } from '../metrics.ts';
import type { Settings } from '../settings.ts';
import type { AccountRequest, Endpoint } from './endpoint.ts';

/** More accounts and callers than change something within the bound of the lag. */
const WRITERS_MAX = 50_000;

type Asking = Pick<AccountRequest, 'account' | 'principal'>;

/**
 * Where lists, counts and statistics are read: from the replica, if there is one and it shows what whoever asks has
 * changed through this process. Who asks is told by a credential, which is looked up in the primary as everything
 * else that must not lag (docs/adr/0048-replica-reads.md).
 */
export class LaggingReads {
  readonly #primary: Queryable;
  readonly #replica: Replica | null;
  /** When an account, or a caller who reports, has last changed something. */
  readonly #wroteAtMs: LRUCache<string, number>;

  constructor(primary: Queryable, replica: Replica | null) {
    this.#primary = primary;
    this.#replica = replica;
    // Takes the room for all of them at once: 1 MB, for which there is no use without a replica.
    this.#wroteAtMs = new LRUCache({ max: replica === null ? 1 : WRITERS_MAX });
  }

  of(asking: Asking): Queryable {
    if (this.#replica === null) return this.#primary;
    const times = [accountKey(asking), callerKey(asking)].map((key) => this.#wroteAtMs.get(key) ?? 0);
    return this.#replica.reader(Math.max(...times));
  }

  /** For what nobody asked for: counts that are kept, and looks for changes. */
  get ofNobody(): Queryable {
    return this.#replica?.reader() ?? this.#primary;
  }

  /**
   * To be called after the work of a request, whatever became of it. What job runners report never ends: it counts for the
   * runner itself, and for nobody else of its account.
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

/** A replica that is away or behind is no reason to be out of service: the primary answers what it would have. */
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
