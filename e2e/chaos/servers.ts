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

/** Where records and jobs are. */
export interface Stores {
  databaseUrl: string;
  queueUrl: string;
  /** A folder of the servers, for what a fault needs beside them. */
  folder: string;
  close(): Promise<void>;
}

/** A PostgreSQL, and for its back end a Redis, that may be killed: they keep what they have acknowledged. */
export interface Servers extends Stores {
  killPostgres(): Promise<void>;
  /** On the same port, with what it held. */
  restartPostgres(): Promise<void>;
  killRedis(): Promise<void>;
  restartRedis(): Promise<void>;
  /** Answers with the first line of what Redis says. Throws when that is an error, and where there is no Redis. */
  redis(command: string): Promise<string>;
}

/** @param migrations the folder of another release's; this one's when omitted */
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
      if (wanted !== got) throw new Error(`the server came back on port ${got} instead of ${wanted}`);
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

/** For servers, which are ended and removed with it when this process is killed. */
export async function makeFolder(releases: Releases): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-chaos-'));
  releases.add(cleanUpAfter(folder));
  // Other accounts may pass: PostgreSQL does not run as root.
  await chmod(folder, 0o711);
  return folder;
}

/** As an inline command, which needs no client. */
async function sayToRedis(port: number | undefined, command: string): Promise<string> {
  if (port === undefined) throw new Error('the queue is not on Redis');
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  socket.write(`${command}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  const text = answer.toString();
  if (text.startsWith('-')) throw new Error(`${command} was answered ${text}`);
  return text;
}

/** The servers of a run that is killed must not stay: jest's own processes hear no signal. */
function cleanUpAfter(folder: string): () => Promise<void> {
  const script = fileURLToPath(new URL('./clean-up-after.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, folder], {
    // In a group of its own, which a kill of the tests' group does not reach.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  return async () => {
    const exited = once(child, 'exit');
    child.stdin?.end();
    await exited;
  };
}
