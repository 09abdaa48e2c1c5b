import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import pg from 'pg';

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

/**
 * Lends Prisma's schema engine, as WebAssembly over the pg driver, to `work`: the same engine and the same
 * `_prisma_migrations` table as the Prisma CLI, without the binary that the CLI downloads.
 * @param datamodels pairs of file name and schema text; none are needed to apply migrations
 */
export async function withSchemaEngine<T>(
  databaseUrl: string,
  work: (engine: SchemaEngine) => Promise<T>,
  datamodels?: [string, string][],
): Promise<T> {
  const { SchemaEngine } = await loadEngine();
  // One connection: the engine's advisory lock belongs to a session.
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    const adapter = bindMigrationAwareSqlAdapterFactory(new WholeScriptAdapterFactory(pool));
    const engine = await SchemaEngine.new({ datamodels }, () => undefined, adapter);
    try {
      return await work(engine);
    } finally {
      engine.free();
    }
  } finally {
    await pool.end();
  }
}

/**
 * The adapter cuts a script at every semicolon, the ones inside a function's body too. Sent whole, it is one
 * implicit transaction besides: a migration applies entirely or not at all.
 */
class WholeScriptAdapterFactory extends PrismaPg {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    super(pool);
    this.#pool = pool;
  }

  override async connect() {
    const adapter = await super.connect();
    adapter.executeScript = async (script: string) => void (await this.#pool.query(script));
    return adapter;
  }
}

/** Node has it; only the browser's type library declares it. */
declare const WebAssembly: {
  instantiate(
    bytes: Uint8Array,
    imports: object,
  ): Promise<{ instance: { exports: Record<string, unknown> } }>;
};

type EngineModule = typeof import('@prisma/schema-engine-wasm') & { __wbg_set_wasm(exports: unknown): void };
let loaded: Promise<EngineModule> | undefined;

/** The package's main entry imports a .wasm file, which Node does only behind a flag; so it is put together here. */
function loadEngine(): Promise<EngineModule> {
  loaded ??= instantiate();
  return loaded;
}

async function instantiate(): Promise<EngineModule> {
  const bindingsPath = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const wasm = await readFile(bindingsPath.replace(/\.js$/, '.wasm'));
  const bindings = (await import('@prisma/schema-engine-wasm/schema_engine_bg')) as unknown as EngineModule;
  const { instance } = await WebAssembly.instantiate(wasm, { './schema_engine_bg.js': bindings });
  bindings.__wbg_set_wasm(instance.exports);
  (instance.exports.__wbindgen_start as () => void)();
  return bindings;
}
