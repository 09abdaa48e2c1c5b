import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { type RunScriptOptions, runScript, ScriptError } from './migration-script.ts';
import { withSchemaEngine } from './schema-engine.ts';
import { withClient } from './with-client.ts';

export { disableJit } from './disable-jit.ts';
export { type RewrittenTable, rewriteLog } from './rewrite-log/rewrite-log.ts';
export { grantPrivileges } from './roles/grants.ts';
export { DISPATCHER_FUNCTIONS, type ServiceName, TABLE_PRIVILEGES } from './roles/privileges.ts';
export {
  type DatabaseRoles,
  isRoleName,
  prepareRoles,
  RolesMissingError,
  roleOfUrl,
  type ServiceRole,
  urlAsOwner,
} from './roles/roles.ts';
export { withSchemaEngine } from './schema-engine.ts';

const LOCKFILE = 'migration_lock.toml';

export type MigrationList = Awaited<ReturnType<typeof readMigrations>>;

/** Returns the migrations in the schema engine's format, oldest first. */
export async function readMigrations(directory: string = findMigrations()) {
  const names = (await readdir(directory, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  return {
    baseDir: directory,
    lockfile: { path: LOCKFILE, content: await readFile(`${directory}/${LOCKFILE}`, 'utf8') },
    shadowDbInitScript: '',
    migrationDirectories: await Promise.all(
      names.map(async (name) => ({
        path: name,
        migrationFile: {
          path: 'migration.sql',
          content: {
            tag: 'ok' as const,
            value: await readFile(`${directory}/${name}/migration.sql`, 'utf8'),
          },
        },
      })),
    ),
  };
}

/**
 * Returns the nearest `prisma/migrations` above this file. The distance differs between a checkout and an image, where
 * this package is inside node_modules.
 */
function findMigrations(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); folder !== dirname(folder); ) {
    folder = dirname(folder);
    const migrations = join(folder, 'prisma', 'migrations');
    if (existsSync(join(migrations, LOCKFILE))) return migrations;
  }
  throw new Error('there is no prisma/migrations above this program');
}

export interface MigrateOptions extends RunScriptOptions {
  /** Directory of the migrations; those of this release when omitted. */
  directory?: string;
}

const FILTERS = { externalTables: [], externalEnums: [] };

/**
 * Applies the missing migrations and returns their names. Concurrent calls are serialized by the engine's advisory
 * lock. A migration that waits for a lock times out and is retried, so that other sessions can proceed.
 * @throws MigrationFailedError with the database's message
 */
export async function migrate(
  databaseUrl: string,
  { directory, ...options }: MigrateOptions = {},
): Promise<string[]> {
  const migrationsList = await readMigrations(directory);
  let failure: ScriptError | undefined;
  const run = async (pool: pg.Pool, script: string) => {
    try {
      await runScript(pool, script, options);
    } catch (error) {
      if (error instanceof ScriptError) failure = error;
      throw error;
    }
  };
  return await withSchemaEngine(
    databaseUrl,
    async (engine) => {
      try {
        return (await engine.applyMigrations({ migrationsList, filters: FILTERS })).appliedMigrationNames;
      } catch (error) {
        if (failure !== undefined) throw await recordFailure(databaseUrl, migrationsList, failure);
        if ((error as { code?: string }).code === UNRESOLVED_FAILURE)
          throw new MigrationUnresolvedError(error);
        throw error;
      }
    },
    { runScript: run },
  );
}

const UNRESOLVED_FAILURE = 'P3009';

/** A migration failed. It was rolled back entirely, unless it runs outside a transaction. */
class MigrationFailedError extends Error {
  readonly code = 'migration_failed';
}

/** A migration started, and the database does not record whether it ended. */
class MigrationUnresolvedError extends Error {
  readonly code = 'migration_unresolved';

  constructor(cause: unknown) {
    super(
      'A migration started and did not end; `migrate status` names it. Check which of its changes are in the database, ' +
        'then run `migrate resolve --rolled-back <name>` (it is retried) or `migrate resolve --applied <name>`.',
      { cause },
    );
  }
}

/** Stores the database's message with the migration. One that was rolled back is marked so that it can be retried. */
async function recordFailure(
  databaseUrl: string,
  { migrationDirectories }: MigrationList,
  error: ScriptError,
): Promise<MigrationFailedError> {
  const name = migrationDirectories.find(
    ({ migrationFile }) => migrationFile.content.value === error.script,
  )?.path;
  await withClient(databaseUrl, (client) =>
    client.query(
      `UPDATE _prisma_migrations SET logs = $2, rolled_back_at = CASE WHEN $3 THEN now() END
       WHERE migration_name = $1 AND finished_at IS NULL AND rolled_back_at IS NULL`,
      [name, error.message, error.isRolledBack],
    ),
  );
  return new MigrationFailedError(`The migration ${name} failed. ${error.message}`, { cause: error });
}

export interface MigrationState {
  name: string;
  state: 'applied' | 'missing' | 'unresolved' | 'newer than this release';
  /** Time at which the migration was applied or, if it did not end, started. */
  at: Date | null;
  /** Message of the database at the last failure. */
  errorText: string | null;
}

/** Returns the state of each migration of this release, and of others that the database contains, in order of their names. */
export async function readMigrationStates(
  databaseUrl: string,
  directory?: string,
): Promise<MigrationState[]> {
  const { migrationDirectories } = await readMigrations(directory);
  const rows = await withClient(databaseUrl, async (client) => {
    const { rows: tables } = await client.query(`SELECT to_regclass('_prisma_migrations') AS name`);
    if (tables[0]?.name === null) return [];
    return (await client.query<MigrationRow>(SELECT_LATEST_RECORDS)).rows;
  });
  const releaseNames = migrationDirectories.map(({ path }) => path);
  const names = [...new Set([...releaseNames, ...rows.map(({ name }) => name)])].sort();
  return names.map((name) => {
    const row = rows.find((candidate) => candidate.name === name);
    const at = row?.finished_at ?? row?.started_at ?? null;
    if (row === undefined || row.rolled_back_at !== null)
      return { name, state: 'missing', at, errorText: row?.logs ?? null };
    if (row.finished_at === null) return { name, state: 'unresolved', at, errorText: row.logs };
    return {
      name,
      state: releaseNames.includes(name) ? 'applied' : 'newer than this release',
      at,
      errorText: null,
    };
  });
}

/**
 * Begins a generation of positions in the feed if the database was restored (docs/adr/0070-feed.md). Must be called
 * before services write events. Returns whether it began one.
 */
export async function renewFeedGeneration(databaseUrl: string): Promise<boolean> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<{ renewed: boolean }>('SELECT renew_feed_generation() AS renewed'),
  );
  return rows[0]?.renewed === true;
}

interface MigrationRow {
  name: string;
  started_at: Date;
  finished_at: Date | null;
  rolled_back_at: Date | null;
  logs: string | null;
}

const SELECT_LATEST_RECORDS = `
  SELECT DISTINCT ON (migration_name) migration_name AS name, started_at, finished_at, rolled_back_at, logs
  FROM _prisma_migrations ORDER BY migration_name, started_at DESC`;

/** Marks a migration that started and did not end as applied or rolled back. Throws if there is no such record. */
export async function resolveMigration(
  databaseUrl: string,
  name: string,
  outcome: 'applied' | 'rolled back',
): Promise<void> {
  const migrationsList = await readMigrations();
  await withSchemaEngine(databaseUrl, async (engine) => {
    if (outcome === 'applied') await engine.markMigrationApplied({ migrationsList, migrationName: name });
    else await engine.markMigrationRolledBack({ migrationName: name });
  });
}
