import type { Pool } from './open-database.ts';
import { runStatement } from './statements.ts';

/** Capacity of the server's lock table for statements that span all days of the log. */
export interface LockRoom {
  /** Number of locks that one such statement takes: each day's table and its indexes. */
  locksEach: number;
  /** Number of such statements that can run concurrently; one more fails with SQLSTATE 53200. */
  atOnce: number;
  /** The server's setting `max_locks_per_transaction`, and the value that it needs. */
  setting: number;
  settingNeeded: number;
}

/** Days with a partition in addition to the retention: today, and the days created ahead. */
const DAYS_BESIDE = 8;
/** The default partition and the partitioned table. */
const TABLES_BESIDE = 2;
/** Two processes with ten connections each. */
const AT_ONCE_NEEDED = 20;

const ROOM = `
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
export async function lockRoom(pool: Pool, retentionDays: number): Promise<LockRoom> {
  const [row] = await runStatement<{ setting: number; sessions: number; indexes: number }>(pool, ROOM, []);
  const { setting = 0, sessions = 1, indexes = 0 } = row ?? {};
  const locksEach = (retentionDays + DAYS_BESIDE + TABLES_BESIDE) * (1 + indexes);
  return {
    locksEach,
    atOnce: Math.floor((2 * setting * sessions) / locksEach),
    setting,
    settingNeeded: Math.ceil((locksEach * AT_ONCE_NEEDED) / (2 * sessions)),
  };
}
