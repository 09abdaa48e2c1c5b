// SQL by hand: positions, snapshots and the history of the server are functions of PostgreSQL.
import { column, type Queryable, queryRows, runStatement } from '@runhook/database';
import { UnavailableError } from '../http/errors.ts';
import type { FeedGeneration } from './cursor.ts';
import { DistributedLog } from './distributed-log.ts';

/** State of the server for a reader of the feed. */
export interface FeedState {
  /** All generations, the oldest first. */
  generations: [FeedGeneration, ...FeedGeneration[]];
  /** Id of the latest generation, in which new cursors are. */
  generation: string;
  /** Every event below this position is committed, or never will be. */
  horizon: bigint;
  /** The horizon when it was last recorded. */
  markedPosition: bigint;
  /** Position below which transactions have begun; above `horizon` while one that writes is open. */
  end: bigint;
  /** Seconds since the epoch, by the clock of PostgreSQL. */
  nowSeconds: number;
  /** Beginning of the oldest day of the log, whose predecessors were deleted; seconds since the epoch. */
  oldestSeconds: number;
}

const STATE = {
  id: column.text,
  first_position: column.digits,
  marked_position: column.digits,
  is_same_server: column.flag,
  is_current: column.flag,
  horizon: column.digits,
  end_position: column.digits,
  now_seconds: column.digits,
  oldest_seconds: column.digits,
};

// Transactions of other databases of the server are in its snapshots, too, but cannot write events of this one. One that is no
// longer in pg_stat_activity counts, so the horizon is never too high.
const SELECT_STATE = `
  WITH snapshot AS MATERIALIZED (
    SELECT pg_current_snapshot() AS s
  ), horizon AS MATERIALIZED (
    SELECT coalesce(min(x::text::bigint), min(pg_snapshot_xmax(s)::text::bigint)) AS horizon,
      min(pg_snapshot_xmax(s)::text::bigint) AS end_position
    FROM snapshot LEFT JOIN LATERAL pg_snapshot_xip(s) AS x ON (x::text::bigint % 4294967296)::text NOT IN (
      SELECT a.backend_xid::text FROM pg_stat_activity a
      WHERE a.backend_xid IS NOT NULL AND a.datname <> current_database())
  )
  SELECT g.id, g.first_position, g.marked_position, g.system_identifier = h.system_identifier AS is_same_server,
    g.system_identifier = h.system_identifier AND g.timeline = h.timeline AS is_current,
    horizon + g.position_offset AS horizon, end_position + g.position_offset AS end_position,
    floor(extract(epoch FROM now()))::bigint AS now_seconds, (
      SELECT coalesce(extract(epoch FROM min(to_date(substring(child.relname FROM '_([0-9]{8})'), 'YYYYMMDD'))), 0)::bigint
      FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
      WHERE i.inhparent = 'events'::regclass AND child.relname <> 'events_default') AS oldest_seconds
  FROM feed_generations g CROSS JOIN server_history() h CROSS JOIN horizon
  ORDER BY g.number`;

const RENEW = 'SELECT renew_feed_generation()';

const MARK = `
  UPDATE feed_generations SET marked_position = $2::bigint WHERE id = $1 AND marked_position < $2::bigint`;

/** Distance of marks: after a failover, readers may get the events of this time again. */
const MARK_INTERVAL_MS = 10_000;

const NOT_RENEWED = 'The database was restored from a dump: run `migrate` before the feed can be read.';

export interface FeedStateOptions {
  /** The primary: a replica is behind the horizon that it reports. */
  database: Queryable;
  /** Monotonic clock in milliseconds, which tests replace. */
  nowMs?: () => number;
}

/** Reads the state of the feed, and tracks how long an open transaction has held back its horizon. */
export class FeedStateReader {
  readonly #database: Queryable;
  readonly #nowMs: () => number;
  readonly #log: DistributedLog;
  #markedAtMs = Number.NEGATIVE_INFINITY;
  #delay: { horizon: bigint; sinceMs: number } | null = null;

  constructor({ database, nowMs = () => performance.now() }: FeedStateOptions) {
    this.#database = database;
    this.#nowMs = nowMs;
    this.#log = new DistributedLog(database);
  }

  /** Returns the time for which the horizon has not moved although transactions have begun, in seconds. */
  get delaySeconds(): number {
    return this.#delay === null ? 0 : (this.#nowMs() - this.#delay.sinceMs) / 1_000;
  }

  /**
   * Reads the state for a page of an account. Begins a new generation after a failover, and records the horizon now and then, so that
   * cursors of this generation can be checked after the next one.
   * @throws UnavailableError after a restore that `migrate` has not followed
   */
  async read(accountId: number): Promise<FeedState> {
    const { state, isMarkDue } = await this.#readCurrent();
    await this.settle(accountId);
    if (isMarkDue && this.#nowMs() - this.#markedAtMs >= MARK_INTERVAL_MS) {
      this.#markedAtMs = this.#nowMs();
      await runStatement(this.#database, MARK, [state.generation, String(state.horizon)], 'mark-feed');
    }
    return state;
  }

  /**
   * Resolves when the events of an account below a horizon that was read before are visible.
   * @throws UnavailableError if this takes too long
   */
  settle(accountId: number): Promise<void> {
    return this.#log.settle(accountId);
  }

  /** Reads the horizon only, also after a restore or a failover. */
  async readHorizon(): Promise<bigint> {
    return (await this.#readRows()).state.horizon;
  }

  async #readCurrent(): Promise<{ state: FeedState; isMarkDue: boolean }> {
    const first = await this.#readRows();
    if (first.latest.is_current) return first;
    if (!first.latest.is_same_server) throw new UnavailableError(NOT_RENEWED);
    await runStatement(this.#database, RENEW, []);
    return await this.#readRows();
  }

  async #readRows() {
    const rows = await queryRows(this.#database, STATE, SELECT_STATE, [], 'feed-state');
    const [first, ...others] = rows.map(
      ({ id, first_position: position }): FeedGeneration => ({ id, firstPosition: BigInt(position) }),
    );
    const latest = rows.at(-1);
    if (first === undefined || latest === undefined) throw new Error('feed_generations is empty');
    const state: FeedState = {
      generations: [first, ...others],
      generation: latest.id,
      horizon: BigInt(latest.horizon),
      markedPosition: BigInt(latest.marked_position),
      end: BigInt(latest.end_position),
      nowSeconds: Number(latest.now_seconds),
      oldestSeconds: Number(latest.oldest_seconds),
    };
    this.#track(state);
    return { state, latest, isMarkDue: state.markedPosition < state.horizon };
  }

  #track({ horizon, end }: FeedState): void {
    if (end <= horizon) this.#delay = null;
    else if (this.#delay?.horizon !== horizon) this.#delay = { horizon, sinceMs: this.#nowMs() };
  }
}
