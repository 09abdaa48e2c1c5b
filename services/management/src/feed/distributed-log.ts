// SQL by hand: compares the snapshots of the servers of a distributed log.
import { setTimeout as wait } from 'node:timers/promises';
import { column, type Queryable, queryRows } from '@runhook/database';
import { UnavailableError } from '../http/errors.ts';

const CHECK_INTERVAL_MS = 50;
const SETTLE_MS_MAX = 3_000;

const SELECT_IS_CITUS = `SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AS is_true`;
const SELECT_IS_DISTRIBUTED = `
  SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'events'::regclass) AS is_true`;
const FLAG = { is_true: column.flag };

// An aggregate without rows, because Citus sends a query with the account to its worker, where these functions then run.
const SELECT_SNAPSHOT = `
  SELECT max(position) AS none, pg_snapshot_xmin(pg_current_snapshot())::text AS xmin,
    pg_snapshot_xmax(pg_current_snapshot())::text AS xmax
  FROM events WHERE account_id = $1 AND position = -1`;
const SNAPSHOT = { xmin: column.digits, xmax: column.digits };

/**
 * A log that Citus distributes. Positions are transactions of the coordinator, which commits before its workers do: what is
 * below its horizon may not be visible on a worker yet. Every such transaction is prepared on the worker, so it is visible
 * once no transaction is open that had begun there (docs/adr/0070-feed.md).
 */
export class DistributedLog {
  readonly #database: Queryable;
  #isDistributed: Promise<boolean> | undefined;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /**
   * Resolves when the events below a horizon that was read before are visible; at once unless the log is distributed.
   * @throws UnavailableError if this takes too long, as while a worker returns
   */
  async settle(accountId: number): Promise<void> {
    if (!(await this.#readIsDistributed())) return;
    const { xmax } = await this.#snapshot(accountId);
    for (let waitedMs = 0; waitedMs < SETTLE_MS_MAX; waitedMs += CHECK_INTERVAL_MS) {
      const { xmin } = await this.#snapshot(accountId);
      if (BigInt(xmin) >= BigInt(xmax)) return;
      await wait(CHECK_INTERVAL_MS);
    }
    throw new UnavailableError();
  }

  async #snapshot(accountId: number): Promise<{ xmin: string; xmax: string }> {
    const [row] = await queryRows(this.#database, SNAPSHOT, SELECT_SNAPSHOT, [accountId], 'worker-snapshot');
    if (row === undefined) throw new Error('an aggregate has one row');
    return row;
  }

  /** Tables are distributed before the services start, so the result is cached. */
  #readIsDistributed(): Promise<boolean> {
    this.#isDistributed ??= this.#query().catch((error) => {
      this.#isDistributed = undefined;
      throw error;
    });
    return this.#isDistributed;
  }

  async #query(): Promise<boolean> {
    const isTrue = async (statement: string) =>
      (await queryRows(this.#database, FLAG, statement, []))[0]?.is_true === true;
    return (await isTrue(SELECT_IS_CITUS)) && (await isTrue(SELECT_IS_DISTRIBUTED));
  }
}
