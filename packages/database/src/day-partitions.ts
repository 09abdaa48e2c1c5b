import type pg from 'pg';
import { runStatement } from './database-unavailable.ts';

const DAYS_AHEAD = 7;

/** Makes the missing day partitions from yesterday to a week ahead; answers how many it made. Safe to repeat. */
export async function ensureDayPartitions(pool: pg.Pool): Promise<number> {
  const [row] = await runStatement<{ made: number }>(
    pool,
    `SELECT ensure_day_partitions((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + $1::int) AS made`,
    [DAYS_AHEAD],
  );
  return row?.made ?? 0;
}
