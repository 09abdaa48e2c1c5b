import type { Pool } from './open-database.ts';
import { runStatement } from './statements.ts';

/** Capacity of the server's lock table for statements that span all days of the log. */
export interface LockCapacity {
  /** Number of locks that one such statement takes: each day's table and its indexes. */
  locksPerStatement: number;
  /** Number of such statements that can run concurrently; one more fails with SQLSTATE 53200. */
  statementsMax: number;
  /** The server's setting `max_locks_per_transaction`, and the value that it needs. */
  setting: number;
  settingNeeded: number;
}

/** Days with a partition in addition to the retention: today, and the days created ahead. */
const EXTRA_DAYS = 8;
/** The default partition and the partitioned table. */
const EXTRA_TABLES = 2;
/** Concurrent statements that the lock table must allow: two processes with ten connections each. */
const STATEMENTS_NEEDED = 20;

const SELECT_LOCK_SETTINGS = `
  SELECT current_setting('max_locks_per_transaction')::int AS setting,
    current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int AS sessions,
    (SELECT max(indexes) FROM (
      SELECT count(*)::int AS indexes FROM pg_index
      WHERE indrelid IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass) GROUP BY indrelid
    ) AS tables) AS indexes`;

/**
 * Computes the capacity. The server's lock table holds (setting × sessions) locked objects and twice as many holders;
 * each statement needs a holder entry for each of its locks.
 */
export async function readLockCapacity(pool: Pool, retentionDays: number): Promise<LockCapacity> {
  const [row] = await runStatement<{ setting: number; sessions: number; indexes: number }>(
    pool,
    SELECT_LOCK_SETTINGS,
    [],
  );
  const { setting = 0, sessions = 1, indexes = 0 } = row ?? {};
  const locksPerStatement = (retentionDays + EXTRA_DAYS + EXTRA_TABLES) * (1 + indexes);
  return {
    locksPerStatement,
    statementsMax: Math.floor((2 * setting * sessions) / locksPerStatement),
    setting,
    settingNeeded: Math.ceil((locksPerStatement * STATEMENTS_NEEDED) / (2 * sessions)),
  };
}
