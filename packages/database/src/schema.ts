import { KNOWN_MIGRATIONS } from './generated/migrations.ts';
import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

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
