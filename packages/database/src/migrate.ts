import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { withSchemaEngine } from './schema-engine.ts';

/** `prisma/migrations`, seen from `packages/database/{src,dist}`. */
const MIGRATIONS_DIR = fileURLToPath(new URL('../../../prisma/migrations', import.meta.url));
const LOCKFILE = 'migration_lock.toml';

export type MigrationList = Awaited<ReturnType<typeof readMigrations>>;

/** The migrations in the form that the schema engine takes, oldest first. */
export async function readMigrations(directory: string = MIGRATIONS_DIR) {
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
 * Applies what is missing and answers the names of the migrations it applied. Calls at the same time take turns
 * (the engine holds an advisory lock). Throws with the failing statement's error when one does not apply.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const migrationsList = await readMigrations();
  return await withSchemaEngine(databaseUrl, async (engine) => {
    const filters = { externalTables: [], externalEnums: [] };
    return (await engine.applyMigrations({ migrationsList, filters })).appliedMigrationNames;
  });
}
