import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { migrate } from '@runhook/database/migrate';
import { startPostgres, startRedis } from '@runhook/embedded';
import { Releases } from './releases.ts';

export type BackendName = 'PostgreSQL' | 'Redis';

/** Locates the database and the queue. */
export interface Stores {
  databaseUrl: string;
  queueUrl: string;
  /** Folder of the servers, for additional files of a fault. */
  folder: string;
  close(): Promise<void>;
}

/** Is a PostgreSQL, and a Redis if it is the back end. Both are durable, and may be killed. */
export interface Servers extends Stores {
  killPostgres(): Promise<void>;
  /** Restarts it on the same port, with its data. */
  restartPostgres(): Promise<void>;
  killRedis(): Promise<void>;
  restartRedis(): Promise<void>;
  /** Returns the first line of Redis's reply. Throws if the reply is an error, or without a Redis. */
  redis(command: string): Promise<string>;
}

/** @param migrations folder of another release; that of this release when omitted */
export async function startServers(backend: BackendName, migrations?: string): Promise<Servers> {
  const releases = new Releases();
  try {
    const folder = await makeFolder(releases);
    const openPostgres = (port?: number) =>
      startPostgres({ dataDir: join(folder, 'postgres'), ...(port === undefined ? {} : { port }) });
    const openRedis = (port?: number) =>
      startRedis({
        dataDir: join(folder, 'redis'),
        appendOnly: true,
        ...(port === undefined ? {} : { port }),
      });
    let postgres = await openPostgres();
    releases.add(() => postgres.stop());
    await migrate(postgres.url, migrations === undefined ? {} : { directory: migrations });
    let redis = backend === 'Redis' ? await openRedis() : null;
    releases.add(async () => await redis?.stop());

    const { url: databaseUrl, port: postgresPort } = postgres;
    const redisPort = redis?.port;
    const samePort = (wanted: number, got: number) => {
      if (wanted !== got) throw new Error(`the server was restarted on port ${got} instead of ${wanted}`);
    };
    return {
      databaseUrl,
      queueUrl: redis?.url ?? databaseUrl,
      killPostgres: () => postgres.kill(),
      restartPostgres: async () => {
        postgres = await openPostgres(postgresPort);
        samePort(postgresPort, postgres.port);
      },
      killRedis: async () => await redis?.kill(),
      restartRedis: async () => {
        if (redisPort === undefined) return;
        redis = await openRedis(redisPort);
        samePort(redisPort, redis.port);
      },
      redis: async (command) => await sayToRedis(redisPort, command),
      folder,
      close: () => releases.run(),
    };
  } catch (error) {
    await releases.run();
    throw error;
  }
}

/** Makes a folder for servers, which are ended and removed with it if this process is killed. */
export async function makeFolder(releases: Releases): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-chaos-'));
  releases.add(cleanUpAfter(folder));
  // Other accounts may traverse it, because PostgreSQL does not run as root.
  await chmod(folder, 0o711);
  return folder;
}

/** Sends an inline command, which needs no client. */
async function sayToRedis(port: number | undefined, command: string): Promise<string> {
  if (port === undefined) throw new Error('the queue is not on Redis');
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  socket.write(`${command}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  const text = answer.toString();
  if (text.startsWith('-')) throw new Error(`${command} returned ${text}`);
  return text;
}

/** Ends the servers after a kill of the run, because jest's processes do not handle signals. */
function cleanUpAfter(folder: string): () => Promise<void> {
  const script = fileURLToPath(new URL('./clean-up-after.mjs', import.meta.url));
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
