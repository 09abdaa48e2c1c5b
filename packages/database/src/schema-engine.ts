import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import pg from 'pg';
import { DISABLE_JIT } from './with-client.ts';

/**
 * Runs `work` with Prisma's schema engine, as WebAssembly over the pg driver: the same engine and the same
 * `_prisma_migrations` table as the Prisma CLI, without the binary that the CLI downloads.
 */
export async function withSchemaEngine<T>(
  databaseUrl: string,
  work: (engine: SchemaEngine) => Promise<T>,
  { datamodels, runScript = runInOneCall }: SchemaEngineOptions = {},
): Promise<T> {
  const { SchemaEngine } = await loadEngine();
  // One connection, because the engine's advisory lock belongs to a session.
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 1,
    onConnect: async (client) => void (await client.query(DISABLE_JIT)),
  });
  try {
    const adapter = bindMigrationAwareSqlAdapterFactory(new UnsplitScriptAdapterFactory(pool, runScript));
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

export interface SchemaEngineOptions {
  /** Pairs of file name and schema text; none are needed to apply migrations. */
  datamodels?: [string, string][];
  /** Runs the script of a migration; in one call when omitted. */
  runScript?: ScriptRunner;
}

type ScriptRunner = (pool: pg.Pool, script: string) => Promise<void>;

const runInOneCall: ScriptRunner = async (pool, script) => void (await pool.query(script));

/** Runs scripts in one call. The adapter of Prisma splits them at every semicolon, even inside function bodies. */
class UnsplitScriptAdapterFactory extends PrismaPg {
  readonly #pool: pg.Pool;
  readonly #runScript: ScriptRunner;

  constructor(pool: pg.Pool, runScript: ScriptRunner) {
    super(pool);
    this.#pool = pool;
    this.#runScript = runScript;
  }

  override async connect() {
    const adapter = await super.connect();
    adapter.executeScript = (script: string) => this.#runScript(this.#pool, script);
    return adapter;
  }
}

/** Node provides WebAssembly, but only the type library of browsers declares it. */
declare const WebAssembly: {
  instantiate(
    bytes: Uint8Array,
    imports: object,
  ): Promise<{ instance: { exports: Record<string, unknown> } }>;
};

type EngineModule = typeof import('@prisma/schema-engine-wasm') & { __wbg_set_wasm(exports: unknown): void };
let engineModule: Promise<EngineModule> | undefined;

/** Instantiates the engine manually: the main entry imports a .wasm file, which Node supports only behind a flag. */
function loadEngine(): Promise<EngineModule> {
  engineModule ??= instantiate();
  return engineModule;
}

async function instantiate(): Promise<EngineModule> {
  const bindingsPath = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const wasm = await readFile(bindingsPath.replace(/\.js$/, '.wasm'));
  const bindings = (await import('@prisma/schema-engine-wasm/schema_engine_bg')) as unknown as EngineModule;
  const { instance } = await WebAssembly.instantiate(wasm, {
    './schema_engine_bg.js': withUnrefTimers(bindings),
  });
  bindings.__wbg_set_wasm(instance.exports);
  (instance.exports.__wbindgen_start as () => void)();
  return bindings;
}

/** Unrefs the engine's timers, which it never clears: ten seconds for each lock would delay the exit of the process. */
function withUnrefTimers(bindings: object): object {
  const imports = Object.entries(bindings).map(([name, binding]) => {
    if (!name.startsWith('__wbg_setTimeout_')) return [name, binding];
    return [name, (...call: unknown[]) => (binding(...call) as NodeJS.Timeout).unref()];
  });
  return Object.fromEntries(imports);
}
