import type pg from 'pg';
import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

/** The migrations that this build was made with, oldest first: a test holds the list against prisma/migrations. */
export const KNOWN_MIGRATIONS: readonly string[] = [
  '20261121000000_foundation',
  '20261121010000_console_sessions',
  '20261121020000_upkeep',
  '20261121030000_recoveries',
  '20261121040000_idempotency_keys',
  '20261121050000_deliveries_by_run',
  '20261121060000_trace_context',
  '20261121070000_subscription_versions',
  '20261121080000_attempt_timings',
];

/** The database lacks migrations that this build needs. Newer ones than it knows are no fault: they only add. */
export class SchemaBehindError extends Error {
  readonly code = 'SCHEMA_BEHIND';
}

const MISSING = `
  SELECT known.name FROM unnest($1::text[]) WITH ORDINALITY AS known (name, position)
  WHERE NOT EXISTS (
    SELECT FROM _prisma_migrations m
    WHERE m.migration_name = known.name AND m.finished_at IS NOT NULL AND m.rolled_back_at IS NULL)
  ORDER BY known.position`;
const UNDEFINED_TABLE = '42P01';

/**
 * Passes when every migration of this build is applied; one query, which tells as well that the database answers.
 * @throws SchemaBehindError naming the first that is missing, or DatabaseUnreachableError
 */
export async function requireSchema(database: Queryable): Promise<void> {
  const [missing] = await missingMigrations(database);
  if (missing !== undefined) throw new SchemaBehindError(`The migration ${missing} is not applied.`);
}

async function missingMigrations(database: Queryable): Promise<readonly string[]> {
  try {
    const rows = await runStatement<{ name: string }>(
      database,
      MISSING,
      [KNOWN_MIGRATIONS],
      'schema-version',
    );
    return rows.map(({ name }) => name);
  } catch (error) {
    // An empty database has no list of migrations yet.
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return KNOWN_MIGRATIONS;
    throw error;
  }
}

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
