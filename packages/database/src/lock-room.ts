import type { Pool } from './open-database.ts';
import { runStatement } from './statements.ts';

/** What statements over all days of the log need of the server's table of locks. */
export interface LockRoom {
  /** Locks that one of them takes: each day's table and its indexes. */
  locksEach: number;
  /** How many of them there is room for at once; one more fails with 53200. */
  atOnce: number;
  /** The server's setting `max_locks_per_transaction`, and what it would have to be. */
  setting: number;
  settingNeeded: number;
}

/** Days there are beside the retention's: today, and those made ahead. */
const DAYS_BESIDE = 8;
/** The default partition, and the table that all are of. */
const TABLES_BESIDE = 2;
/** Two processes of ours, of ten connections each. */
const AT_ONCE_NEEDED = 20;

const ROOM = `
  SELECT current_setting('max_locks_per_transaction')::int AS setting,
    current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int AS sessions,
    (SELECT max(indexes) FROM (
      SELECT count(*)::int AS indexes FROM pg_index
      WHERE indrelid IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass) GROUP BY indrelid
    ) AS tables) AS indexes`;

/**
 * The server has room for as many locks as twice this setting times its sessions: once for what is locked, and twice for
 * who has it, of which each statement needs its own.
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
