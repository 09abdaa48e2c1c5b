import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { migrate } from '@runhook/database/migrate';
import { startPostgres, startRedis } from '@runhook/embedded';
import { migrateQueue } from '@runhook/queue';
import { prepareDatabase } from '@runhook/testing';
import { CleanupStack } from './cleanup-stack.ts';

export type BackendName = 'PostgreSQL' | 'Redis';

/** Locates the database and the queue. */
export interface Stores {
  databaseUrl: string;
  queueUrl: string;
  /** Folder of the servers, for additional files of a fault. */
  folder: string;
  close(): Promise<void>;
}

/** A PostgreSQL, and a Redis if the queue is on Redis. Both retain their data when they are killed. */
export interface Servers extends Stores {
  killPostgres(): Promise<void>;
  /** Restarts PostgreSQL on the same port, with its data. */
  restartPostgres(): Promise<void>;
  killRedis(): Promise<void>;
  restartRedis(): Promise<void>;
  /** Returns the first line of Redis's reply. Throws if the reply is an error, or without a Redis. */
  redis(command: string): Promise<string>;
}

/** By its name, the services log in with their roles. */
export const CHAOS_DATABASE = 'runhook_test_chaos';

/** @param migrations folder of another release; that of this release when omitted */
export async function startServers(backend: BackendName, migrations?: string): Promise<Servers> {
  const cleanup = new CleanupStack();
  try {
    const folder = await makeFolder(cleanup);
    const openPostgres = (port?: number) =>
      startPostgres({
        dataDir: join(folder, 'postgres'),
        // An older release has one role for everything.
        ...(migrations === undefined && { database: CHAOS_DATABASE }),
        ...(port === undefined ? {} : { port }),
      });
    const openRedis = (port?: number) =>
      startRedis({
        dataDir: join(folder, 'redis'),
        appendOnly: true,
        ...(port === undefined ? {} : { port }),
      });
    let postgres = await openPostgres();
    cleanup.add(() => postgres.stop());
    if (migrations === undefined) await prepareDatabase(postgres.url);
    else {
      await migrate(postgres.url, { directory: migrations });
      if (backend === 'PostgreSQL') await migrateQueue(postgres.url);
    }
    let redis = backend === 'Redis' ? await openRedis() : null;
    cleanup.add(async () => await redis?.stop());

    const { url: databaseUrl, port: postgresPort } = postgres;
    const redisPort = redis?.port;
    const requireSamePort = (expected: number, actual: number) => {
      if (expected !== actual)
        throw new Error(`the server was restarted on port ${actual} instead of ${expected}`);
    };
    return {
      databaseUrl,
      queueUrl: redis?.url ?? databaseUrl,
      killPostgres: () => postgres.kill(),
      restartPostgres: async () => {
        postgres = await openPostgres(postgresPort);
        requireSamePort(postgresPort, postgres.port);
      },
      killRedis: async () => await redis?.kill(),
      restartRedis: async () => {
        if (redisPort === undefined) return;
        redis = await openRedis(redisPort);
        requireSamePort(redisPort, redis.port);
      },
      redis: async (command) => await sendToRedis(redisPort, command),
      folder,
      close: () => cleanup.run(),
    };
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

/** Makes a folder for servers, which are ended and removed with it if this process is killed. */
export async function makeFolder(cleanup: CleanupStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-chaos-'));
  cleanup.add(startCleanupProcess(folder));
  // Other accounts may traverse it, because PostgreSQL does not run as root.
  await chmod(folder, 0o711);
  return folder;
}

/** Sends an inline command, which needs no client. */
async function sendToRedis(port: number | undefined, command: string): Promise<string> {
  if (port === undefined) throw new Error('the queue is not on Redis');
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  socket.write(`${command}\r\n`);
  const [response] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  const text = response.toString();
  if (text.startsWith('-')) throw new Error(`${command} returned ${text}`);
  return text;
}

/** Ends the servers after a kill of the run, because jest's processes do not handle signals. */
function startCleanupProcess(folder: string): () => Promise<void> {
  const script = fileURLToPath(new URL('./cleanup-process.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, folder], {
    // A separate group is not affected by a kill of the tests' group.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  return async () => {
    const exited = once(child, 'exit');
    child.stdin?.end();
    await exited;
  };
}
