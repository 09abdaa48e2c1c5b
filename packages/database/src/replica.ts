import type pg from 'pg';
import {
  type Database,
  type DatabaseOptions,
  openDatabase,
  type Pool,
  type Queryable,
  type Statement,
} from './open-database.ts';

/** Whether reads go to the replica, and if not, the reason. */
export type ReplicaState = 'used' | 'unavailable' | 'lagging' | 'not_a_replica';

export interface ReplicaOptions {
  /** URL of the primary. */
  primaryUrl: string;
  replicaUrl: string;
  /** Maximum age of commits that the replica may not show yet. */
  lagMaxMs: number;
  /** Serves the reads that the replica cannot serve. */
  primary: Queryable;
  /** Maximum number of connections for reads; 10 when omitted. */
  connectionsMax?: number;
  /** Called when the state changes, with the reason, or with null when reads go to the replica. */
  onChange?: (state: ReplicaState, reason: Error | null) => void;
  /** Called for each statement with the server that serves it. */
  onRead?: (server: 'replica' | 'primary') => void;
  /** Called with the error of a connection that breaks while idle. The pool replaces such connections automatically. */
  onConnectionError?: (error: Error) => void;
}

const PRIMARY_POSITION = `SELECT (pg_current_wal_lsn() - '0/0')::text AS position`;
const REPLICA_POSITION = `
  SELECT pg_is_in_recovery() AS is_replica, (pg_last_wal_replay_lsn() - '0/0')::text AS position`;

/** Number of polls in `lagMaxMs`, so that the lag is measured precisely enough. */
const POLLS_PER_BOUND = 5;
const POLL_INTERVAL = { minMs: 100, maxMs: 1_000 };
/** Timeout of a poll of either server. A server that does not respond counts as unavailable. */
const POLL_TIMEOUT_MS = 1_000;
/** Maximum number of stored positions. If the replica is behind the oldest, only a lower limit of its lag is known. */
const POSITIONS_MAX = 1_000;

/** Position to which the primary had written its WAL when it was polled, in bytes. */
interface WrittenPosition {
  askedAtMs: number;
  position: bigint;
}

/**
 * Reads from a streaming replica while it is certain to show all commits until an instant at most `lagMaxMs` ago. WAL
 * positions determine that instant: the primary is polled for the position that it has written, the replica for the
 * position that it has replayed. So an idle primary causes no lag, and no clocks are compared. Statements that the
 * replica cannot serve go to the primary, including those in flight when the replica becomes unavailable.
 */
export class Replica {
  readonly #options: ReplicaOptions;
  readonly #reads: Database;
  readonly #pollConnections: { primary: Database; replica: Database };
  readonly #openedAtMs = performance.now();
  readonly #inFlight = new Set<(error: Error) => void>();
  #positions: WrittenPosition[] = [];
  #replayed = 0n;
  #visibleUntilMs = Number.NEGATIVE_INFINITY;
  /** Null until the first poll. */
  #state: ReplicaState | null = null;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void>;
  #isClosed = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    const { primaryUrl, replicaUrl, connectionsMax, onConnectionError } = options;
    const open = (url: string, rest: Omit<DatabaseOptions, 'url'>) =>
      openDatabase({
        url,
        connectTimeoutMs: POLL_TIMEOUT_MS,
        ...rest,
        ...(onConnectionError && { onConnectionError }),
      });
    // Polls have separate connections: reads must not delay them, or the replica would seem unavailable.
    const pollOptions = { connectionsMax: 1, queryTimeoutMs: POLL_TIMEOUT_MS };
    this.#pollConnections = {
      primary: open(primaryUrl, pollOptions),
      replica: open(replicaUrl, pollOptions),
    };
    this.#reads = open(replicaUrl, connectionsMax === undefined ? {} : { connectionsMax });
    this.#polling = this.#pollRepeatedly();
  }

  /** Returns a runner of read-only statements. @param wroteAtMs commits up to this `performance.now()` must be visible */
  reader(wroteAtMs = Number.NEGATIVE_INFINITY): Queryable {
    return { query: (statement) => this.#query(statement, wroteAtMs) };
  }

  /** Connections for reads. */
  get pool(): Pool {
    return this.#reads.pool;
  }

  /** Age of the last instant up to which the replica is known to show all commits. */
  get lagMs(): number {
    return performance.now() - Math.max(this.#visibleUntilMs, this.#openedAtMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#polling;
    const { primary, replica } = this.#pollConnections;
    await Promise.all([primary.close(), replica.close(), this.#reads.close()]);
  }

  #canServe(wroteAtMs: number): boolean {
    return (
      this.#state === 'used' && this.lagMs <= this.#options.lagMaxMs && this.#visibleUntilMs >= wroteAtMs
    );
  }

  async #query<Row extends pg.QueryResultRow>(
    statement: Statement,
    wroteAtMs: number,
  ): Promise<{ rows: Row[] }> {
    const { primary, onRead } = this.#options;
    if (this.#canServe(wroteAtMs)) {
      try {
        const result = await this.#queryReplica<Row>(statement);
        onRead?.('replica');
        return result;
      } catch {
        // A conflict with replay, a migration that is not replayed yet, or a lost server: the next poll finds out.
      }
    }
    onRead?.('primary');
    return await primary.query<Row>(statement);
  }

  /** Queries the replica. A server that vanished sends no response; polls detect that and reject pending queries. */
  #queryReplica<Row extends pg.QueryResultRow>(statement: Statement): Promise<{ rows: Row[] }> {
    return new Promise((resolve, reject) => {
      this.#inFlight.add(reject);
      this.#reads.pool
        .query<Row>(statement)
        .then(resolve, reject)
        .finally(() => this.#inFlight.delete(reject));
    });
  }

  async #pollRepeatedly(): Promise<void> {
    await this.#poll().catch((error: Error) => this.#setState('unavailable', error));
    if (this.#isClosed) return;
    const { minMs, maxMs } = POLL_INTERVAL;
    const everyMs = Math.min(maxMs, Math.max(minMs, this.#options.lagMaxMs / POLLS_PER_BOUND));
    this.#timer = setTimeout(() => {
      this.#polling = this.#pollRepeatedly();
    }, everyMs);
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    const askedAtMs = performance.now();
    const [primaryRow] = (
      await this.#pollConnections.primary.pool.query<{ position: string }>(PRIMARY_POSITION)
    ).rows;
    const position = BigInt(primaryRow?.position ?? 0);
    const hasRewound = position < this.#replayed;
    this.#positions = hasRewound ? [] : [...this.#positions, { askedAtMs, position }].slice(-POSITIONS_MAX);
    const [replicaRow] = (
      await this.#pollConnections.replica.pool.query<{ is_replica: boolean; position: string | null }>(
        REPLICA_POSITION,
      )
    ).rows;
    this.#replayed = BigInt(replicaRow?.position ?? 0);
    // A replayed position beyond the primary's belongs to another server or an abandoned timeline.
    if (!replicaRow?.is_replica || hasRewound) {
      this.#setState(
        'not_a_replica',
        new Error('the server does not replicate the database of DATABASE_URL'),
      );
      return;
    }
    const shownIndex = this.#positions.findLastIndex((written) => written.position <= this.#replayed);
    const newest = this.#positions[shownIndex];
    if (newest !== undefined) {
      this.#visibleUntilMs = newest.askedAtMs;
      this.#positions = this.#positions.slice(shownIndex);
    }
    if (this.lagMs <= this.#options.lagMaxMs) this.#setState('used', null);
    else this.#setState('lagging', new Error(`the replica lags by ${(this.lagMs / 1_000).toFixed(1)} s`));
  }

  #setState(state: ReplicaState, reason: Error | null): void {
    if (state === 'unavailable' || state === 'not_a_replica') {
      const replicaError = new Error('the replica is unavailable', { cause: reason });
      for (const reject of this.#inFlight) reject(replicaError);
    }
    if (state === this.#state) return;
    this.#state = state;
    if (!this.#isClosed) this.#options.onChange?.(state, reason);
  }
}
