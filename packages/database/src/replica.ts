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
export type ReplicaState = 'used' | 'away' | 'behind' | 'no replica';

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
  /** Called for each statement with the server that returned its result. */
  onRead?: (server: 'replica' | 'primary') => void;
  /** Called with the error of a connection that breaks while idle. The pool replaces such connections automatically. */
  onConnectionError?: (error: Error) => void;
}

const PRIMARY_PLACE = `SELECT (pg_current_wal_lsn() - '0/0')::text AS place`;
const REPLICA_PLACE = `
  SELECT pg_is_in_recovery() AS is_replica, (pg_last_wal_replay_lsn() - '0/0')::text AS place`;

/** Number of polls during the maximum lag, so that the lag is measured precisely enough. */
const LOOKS_PER_BOUND = 5;
const LOOK_EVERY = { minMs: 100, maxMs: 1_000 };
/** Timeout of a poll of either server. A server that does not respond counts as unavailable. */
const LOOK_TIMEOUT_MS = 1_000;
/** Maximum number of stored marks. Of a lag beyond the oldest mark only a lower limit is measured. */
const MARKS_MAX = 1_000;

/** Position to which the primary had written its WAL when it was polled, in bytes. */
interface Mark {
  askedAtMs: number;
  place: bigint;
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
  readonly #looks: { primary: Database; replica: Database };
  readonly #openedAtMs = performance.now();
  readonly #underWay = new Set<(error: Error) => void>();
  #marks: Mark[] = [];
  #replayed = 0n;
  #shownUntilMs = Number.NEGATIVE_INFINITY;
  /** Null until the first poll. */
  #state: ReplicaState | null = null;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void>;
  #isClosed = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    const { primaryUrl, replicaUrl, connectionsMax, onConnectionError } = options;
    const open = (url: string, rest: Omit<DatabaseOptions, 'url'>) =>
      openDatabase({
        url,
        connectTimeoutMs: LOOK_TIMEOUT_MS,
        ...rest,
        ...(onConnectionError && { onConnectionError }),
      });
    // Polls have separate connections: reads must not delay them, or the replica would seem unavailable.
    const forLooks = { connectionsMax: 1, queryTimeoutMs: LOOK_TIMEOUT_MS };
    this.#looks = { primary: open(primaryUrl, forLooks), replica: open(replicaUrl, forLooks) };
    this.#reads = open(replicaUrl, connectionsMax === undefined ? {} : { connectionsMax });
    this.#looking = this.#lookOn();
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
    return performance.now() - Math.max(this.#shownUntilMs, this.#openedAtMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#looking;
    const { primary, replica } = this.#looks;
    await Promise.all([primary.close(), replica.close(), this.#reads.close()]);
  }

  #shows(wroteAtMs: number): boolean {
    return this.#state === 'used' && this.lagMs <= this.#options.lagMaxMs && this.#shownUntilMs >= wroteAtMs;
  }

  async #query<Row extends pg.QueryResultRow>(
    statement: Statement,
    wroteAtMs: number,
  ): Promise<{ rows: Row[] }> {
    const { primary, onRead } = this.#options;
    if (this.#shows(wroteAtMs)) {
      try {
        const answer = await this.#ask<Row>(statement);
        onRead?.('replica');
        return answer;
      } catch {
        // A conflict with replay, a migration that is not replayed yet, or a lost server: the next poll finds out.
      }
    }
    onRead?.('primary');
    return await primary.query<Row>(statement);
  }

  /** Queries the replica. A server that vanished sends no response; polls detect that and reject pending queries. */
  #ask<Row extends pg.QueryResultRow>(statement: Statement): Promise<{ rows: Row[] }> {
    return new Promise((resolve, reject) => {
      this.#underWay.add(reject);
      this.#reads.pool
        .query<Row>(statement)
        .then(resolve, reject)
        .finally(() => this.#underWay.delete(reject));
    });
  }

  async #lookOn(): Promise<void> {
    await this.#look().catch((error: Error) => this.#turn('away', error));
    if (this.#isClosed) return;
    const { minMs, maxMs } = LOOK_EVERY;
    const everyMs = Math.min(maxMs, Math.max(minMs, this.#options.lagMaxMs / LOOKS_PER_BOUND));
    this.#timer = setTimeout(() => {
      this.#looking = this.#lookOn();
    }, everyMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const askedAtMs = performance.now();
    const [written] = (await this.#looks.primary.pool.query<{ place: string }>(PRIMARY_PLACE)).rows;
    const place = BigInt(written?.place ?? 0);
    const isPast = place < this.#replayed;
    this.#marks = isPast ? [] : [...this.#marks, { askedAtMs, place }].slice(-MARKS_MAX);
    const [there] = (
      await this.#looks.replica.pool.query<{ is_replica: boolean; place: string | null }>(REPLICA_PLACE)
    ).rows;
    this.#replayed = BigInt(there?.place ?? 0);
    // A replayed position beyond the primary's belongs to another server or an abandoned timeline.
    if (!there?.is_replica || isPast) {
      this.#turn('no replica', new Error('what answers does not follow the database of DATABASE_URL'));
      return;
    }
    const shown = this.#marks.findLastIndex((mark) => mark.place <= this.#replayed);
    const newest = this.#marks[shown];
    if (newest !== undefined) {
      this.#shownUntilMs = newest.askedAtMs;
      this.#marks = this.#marks.slice(shown);
    }
    if (this.lagMs <= this.#options.lagMaxMs) this.#turn('used', null);
    else this.#turn('behind', new Error(`it is ${(this.lagMs / 1_000).toFixed(1)} s behind`));
  }

  #turn(state: ReplicaState, reason: Error | null): void {
    if (state === 'away' || state === 'no replica') {
      const gone = new Error('the replica has gone', { cause: reason });
      for (const giveUp of this.#underWay) giveUp(gone);
    }
    if (state === this.#state) return;
    this.#state = state;
    if (!this.#isClosed) this.#options.onChange?.(state, reason);
  }
}
