import { MIGRATION_NAMES } from './generated/migrations.ts';
import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

/** A migration of this build or the rewrite of the log is missing. Newer migrations only add, so they do no harm. */
export class SchemaBehindError extends Error {
  readonly code = 'SCHEMA_BEHIND';
}

const SELECT_MISSING_MIGRATIONS = `
  SELECT required.name FROM unnest($1::text[]) WITH ORDINALITY AS required (name, position)
  WHERE NOT EXISTS (
    SELECT FROM _prisma_migrations m
    WHERE m.migration_name = required.name AND m.finished_at IS NOT NULL AND m.rolled_back_at IS NULL)
  ORDER BY required.position`;
/** Comment that the migration of 0.2.0 leaves on the table until {@link rewriteLog} has ended. */
export const REWRITE_IS_PENDING = `obj_description(to_regclass('events'), 'pg_class') = 'rewrite pending'`;
const SELECT_REWRITE_IS_PENDING = `SELECT ${REWRITE_IS_PENDING} AS "isPending"`;
const UNDEFINED_TABLE = '42P01';

/**
 * Checks that every migration of this build is applied and that the log is rewritten.
 * @throws SchemaBehindError with the first migration that is missing, or DatabaseUnreachableError
 */
export async function requireSchema(database: Queryable): Promise<void> {
  const [missing] = await missingMigrations(database);
  if (missing !== undefined) throw new SchemaBehindError(`The migration ${missing} is not applied.`);
  const [row] = await runStatement<{ isPending: boolean | null }>(database, SELECT_REWRITE_IS_PENDING, []);
  if (row?.isPending)
    throw new SchemaBehindError('The rewrite of the log is not finished: run migrate again.');
}

async function missingMigrations(database: Queryable): Promise<readonly string[]> {
  try {
    const rows = await runStatement<{ name: string }>(
      database,
      SELECT_MISSING_MIGRATIONS,
      [MIGRATION_NAMES],
      'schema-version',
    );
    return rows.map(({ name }) => name);
  } catch (error) {
    // An empty database has no table of migrations yet.
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return MIGRATION_NAMES;
    throw error;
  }
}
