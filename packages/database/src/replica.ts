import type pg from 'pg';
import {
  type Database,
  type DatabaseOptions,
  openDatabase,
  type Pool,
  type Queryable,
  type Statement,
} from './open-database.ts';

/** Whether reads go to the replica, and if not why. */
export type ReplicaState = 'used' | 'away' | 'behind' | 'no replica';

export interface ReplicaOptions {
  /** Of the database that is written to. */
  primaryUrl: string;
  replicaUrl: string;
  /** What a read of the replica does not show may be so old at most. */
  lagMaxMs: number;
  /** For what the replica cannot answer now. */
  primary: Queryable;
  /** Connections for reads at most; 10 when omitted. */
  connectionsMax?: number;
  /** Told when reads begin to go elsewhere, and why; null when they go to the replica. */
  onChange?: (state: ReplicaState, reason: Error | null) => void;
  /** Told who answered each statement. */
  onRead?: (server: 'replica' | 'primary') => void;
  /** Told of connections that break while idle. They are replaced by themselves. */
  onConnectionError?: (error: Error) => void;
}

const PRIMARY_PLACE = `SELECT (pg_current_wal_lsn() - '0/0')::text AS place`;
const REPLICA_PLACE = `
  SELECT pg_is_in_recovery() AS is_replica, (pg_last_wal_replay_lsn() - '0/0')::text AS place`;

/** As often as it takes to keep within the bound, and no more often than that is worth. */
const LOOKS_PER_BOUND = 5;
const LOOK_EVERY = { minMs: 100, maxMs: 1_000 };
/** Neither is looked at for longer: what does not answer is as good as away. */
const LOOK_TIMEOUT_MS = 1_000;
/** Of a replica that is further behind than so many looks, it is only known that it is at least so far behind. */
const MARKS_MAX = 1_000;

/** Up to where the primary had written when it was asked, in bytes of its log. */
interface Mark {
  askedAtMs: number;
  place: bigint;
}

/**
 * Reads from a streaming replica, as long as it surely shows everything that was committed up to a moment which is no longer
 * ago than the bound. That moment is measured by places in the write-ahead log: the primary is asked how far it has
 * written, and the replica how far it has replayed, so an idle primary looks like no lag and no clocks are compared.
 * Whatever the replica does not answer, the primary is asked; of what is under way when the replica goes away, too.
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
  /** Null until the first look. */
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
    // Of their own: what is read must not keep the looks waiting, or the replica would seem to be away.
    const forLooks = { connectionsMax: 1, queryTimeoutMs: LOOK_TIMEOUT_MS };
    this.#looks = { primary: open(primaryUrl, forLooks), replica: open(replicaUrl, forLooks) };
    this.#reads = open(replicaUrl, connectionsMax === undefined ? {} : { connectionsMax });
    this.#looking = this.#lookOn();
  }

  /** For statements that only read. @param wroteAtMs what was committed up to then must be shown, by `performance.now()` */
  reader(wroteAtMs = Number.NEGATIVE_INFINITY): Queryable {
    return { query: (statement) => this.#query(statement, wroteAtMs) };
  }

  /** The connections that it reads by. */
  get pool(): Pool {
    return this.#reads.pool;
  }

  /** How long ago the moment is up to which the replica is known to show everything. */
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
        // Whatever it is: in the way of what is replayed, a migration that is not there yet, gone. The looks tell which.
      }
    }
    onRead?.('primary');
    return await primary.query<Row>(statement);
  }

  /** A server that has vanished answers nothing, not even that it has: the looks find out, and end what waits for it. */
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
    // What was replayed and never written here is the log of another server, or of one that was given up.
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
