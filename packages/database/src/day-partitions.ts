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

/**
 * Drops the days of the log that are older than the retention; answers how many partitions went. A day of the log is
 * kept for as long as any part of it is within the retention.
 */
export async function dropOldDayPartitions(pool: pg.Pool, retentionDays: number): Promise<number> {
  const [row] = await runStatement<{ dropped: number }>(
    pool,
    `SELECT drop_day_partitions((now() AT TIME ZONE 'UTC')::date - $1::int) AS dropped`,
    [retentionDays],
  );
  return row?.dropped ?? 0;
}
