import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { type RunningPostgres, type RunningRedis, startPostgres, startRedis } from '@runhook/embedded';
import { prepareDatabase, testEncryptionKeysText, withServiceLogin } from '@runhook/testing';
import { type CpuReading, readCpu } from '../measure/cpu.ts';
import { type Program, startProgram } from '../programs/program.ts';
import { type ServiceProcess, startService } from './service.ts';

export type QueueName = 'redis' | 'postgres';

/** The folder with bin/ and lib/ of a PostgreSQL, and its version. */
export interface PostgresPrograms {
  folder: string;
  version: string;
}

export interface WorldOptions {
  queue: QueueName;
  folder: string;
  guard: Guard;
  receiver: Program & { port: number };
  /** Overrides the default settings of both services. */
  environment?: Record<string, string>;
  management?: boolean;
  /**
   * Programs of another PostgreSQL, which runs with its own default settings; when omitted, the PostgreSQL from npm,
   * which is closest to that of the images.
   */
  postgresPrograms?: PostgresPrograms;
  /** Overrides the default settings and {@link POSTGRES_SETTINGS}. */
  postgresSettings?: Record<string, string>;
  /** The Node program that runs the services; default: the one that runs the benchmark. */
  node?: string;
  /** Node flags of the dispatchers, for a profile. */
  nodeArguments?: readonly string[];
}

/** The services as processes with their servers, initially empty. */
export interface World {
  queue: QueueName;
  database: PrismaDatabase;
  queueUrl: string;
  databaseUrl: string;
  publisher: Program;
  receiver: Program & { port: number };
  management: ServiceProcess | null;
  dispatchers: ServiceProcess[];
  postgres: RunningPostgres;
  redis: RunningRedis | null;
  /** Starts or stops dispatchers until this number is running. */
  setDispatchers(count: number, nodeArguments?: readonly string[]): Promise<void>;
  readCpu(): CpuReading | null;
  /** For a world that is discarded: does not wait for requests to endpoints that never respond. */
  killDispatchers(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Settings of a production server with 8 GB. All settings that make a commit durable are on, as by default. The
 * embedded PostgreSQL runs with the settings of `npm start`.
 */
const POSTGRES_SETTINGS = {
  shared_buffers: '1GB',
  effective_cache_size: '4GB',
  max_wal_size: '4GB',
  wal_compression: 'on',
};

export async function openWorld(options: WorldOptions): Promise<World> {
  const { queue, guard, receiver } = options;
  const cleanup = new CleanupStack();
  try {
    const folder = join(options.folder, randomBytes(4).toString('hex'));
    // Other accounts must be able to pass, because PostgreSQL does not run as root.
    mkdirSync(folder, { mode: 0o711 });
    const { postgres, redis } = await startServers(options, folder, cleanup);
    const queueUrl = redis?.url ?? postgres.url;
    const database = openPrismaDatabase({ url: postgres.url, connectionsMax: 4 });
    cleanup.add(() => database.close());
    const publisher = startProgram('publisher');
    cleanup.add(() => publisher.stop());
    await publisher.call('connect', queueUrl);

    const environment = {
      DATABASE_URL: postgres.url,
      QUEUE_URL: queueUrl,
      ENCRYPTION_KEYS: testEncryptionKeysText,
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
      ...options.environment,
    };
    const start = (name: 'management' | 'dispatcher', flags?: readonly string[]) =>
      startService({
        name,
        environment: withServiceLogin(name, environment),
        folder,
        ...(options.node !== undefined && { node: options.node }),
        ...(flags === undefined ? {} : { nodeArguments: flags }),
        onStarted: (pid) => guard.watch(pid),
      });
    const management = options.management === true ? await start('management') : null;
    if (management !== null) cleanup.add(() => management.stop());
    const dispatchers: ServiceProcess[] = [];
    cleanup.add(() => Promise.all(dispatchers.map((dispatcher) => dispatcher.stop())));

    return {
      queue,
      database,
      queueUrl,
      databaseUrl: postgres.url,
      publisher,
      receiver,
      management,
      dispatchers,
      postgres,
      redis,
      async setDispatchers(count, flags = options.nodeArguments) {
        while (dispatchers.length > count) await dispatchers.pop()?.stop();
        while (dispatchers.length < count) dispatchers.push(await start('dispatcher', flags));
      },
      async killDispatchers() {
        await Promise.all(dispatchers.splice(0).map((dispatcher) => dispatcher.kill()));
      },
      readCpu: () =>
        readCpu({
          dispatcher: dispatchers.map(({ pid }) => pid),
          ...(management === null ? {} : { management: [management.pid] }),
          ...(redis === null ? {} : { redis: [redis.pid] }),
          postgres: [postgres.pid],
          receiver: [receiver.pid],
          publisher: [publisher.pid],
        }),
      close: () => cleanup.run(),
    };
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

/** By its name, the services log in with their roles. */
const BENCH_DATABASE = 'runhook_test_bench';

async function startServers(
  { queue, guard, postgresPrograms, postgresSettings }: WorldOptions,
  folder: string,
  cleanup: CleanupStack,
) {
  const postgres = await startPostgres({
    dataDir: join(folder, 'postgres'),
    database: BENCH_DATABASE,
    settings: {
      ...(queue === 'redis' && postgresPrograms === undefined && POSTGRES_SETTINGS),
      ...postgresSettings,
    },
    ...(postgresPrograms !== undefined && { internals: { binaries: postgresPrograms } }),
  });
  cleanup.add(() => postgres.stop());
  guard.watch(postgres.pid);
  await prepareDatabase(postgres.url);
  const redis =
    queue === 'redis' ? await startRedis({ dataDir: join(folder, 'redis'), appendOnly: true }) : null;
  if (redis !== null) {
    cleanup.add(() => redis.stop());
    guard.watch(redis.pid);
  }
  return { postgres, redis };
}

/** Ends the benchmark's processes if the benchmark itself is killed: see programs/guard.ts. */
export interface Guard {
  watch(pid: number): void;
  /** Reports that everything has been stopped in order, and ends the guard. */
  dismiss(): Promise<void>;
}

export function startGuard(folder: string): Guard {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('../programs/guard.js', import.meta.url)), folder],
    // A separate process group, so that killing the benchmark's group does not end the guard.
    { detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
  );
  const exited = once(child, 'exit');
  return {
    watch: (pid) => child.stdin.write(`${pid}\n`),
    async dismiss() {
      child.stdin.end('done\n');
      await exited;
    },
  };
}

/** Steps that release resources, run in the reverse order of their registration. */
export class CleanupStack {
  readonly #closers: (() => unknown)[] = [];

  add(step: () => unknown): void {
    this.#closers.push(step);
  }

  /** Runs all steps even if some fail, and throws the first error at the end. */
  async run(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.#closers.pop(); step !== undefined; step = this.#closers.pop()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
