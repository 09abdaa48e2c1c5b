import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSchemaEngine } from './schema-engine.ts';

const LOCKFILE = 'migration_lock.toml';

export type MigrationList = Awaited<ReturnType<typeof readMigrations>>;

/** The migrations in the form that the schema engine takes, oldest first. */
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
 * The nearest `prisma/migrations` above this file. How far above depends on where it runs: in the checkout, or in an
 * image, where this package lies somewhere inside node_modules.
 */
function findMigrations(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); folder !== dirname(folder); ) {
    folder = dirname(folder);
    const migrations = join(folder, 'prisma', 'migrations');
    if (existsSync(join(migrations, LOCKFILE))) return migrations;
  }
  throw new Error('there is no prisma/migrations above this program');
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
