import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { readPidFile, stopOrphanedServer } from './server-folder.ts';
import {
  findFreePort,
  findProgram,
  isPortFree,
  ServerFailed,
  type ServerProcess,
  type StopStep,
  serverEnvironment,
  spawnServer,
} from './server-process.ts';

export interface RedisOptions {
  /** Created if it does not exist. */
  dataDir: string;
  /** Preferred port; if it is in use, another is chosen. Default: any free port. */
  port?: number;
  /** Writes an append-only file (at most one second is lost). Default: data is not persisted. */
  appendOnly?: boolean;
  /** Number of logical databases. Default 16; tests use one each and need more. */
  databases?: number;
}

export interface RunningRedis {
  /** `redis://127.0.0.1:port` */
  url: string;
  port: number;
  pid: number;
  /** Sends SIGTERM, after which Redis completes an append-only file. Takes at most about 10 seconds. */
  stop(): Promise<void>;
  /** Sends SIGKILL, for tests of failures. */
  kill(): Promise<void>;
  /** Resolves with the exit code, or null if a signal ended the server. Never rejects. */
  exited: Promise<number | null>;
}

const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 20;
const STOP_STEPS: readonly StopStep[] = [{ signal: 'SIGTERM', graceMs: 10_000 }];

/** Returns the path of redis-server or valkey-server on PATH, or null. */
export function findRedisServer(): string | null {
  return findProgram(['redis-server', 'valkey-server']);
}

/**
 * Starts a Redis (or Valkey) server on 127.0.0.1 without eviction, as BullMQ requires. A server that a killed parent
 * left on this folder is stopped first. The caller must stop the server: Ctrl-C does not reach it.
 *
 * @throws {ServerFailed} `no-binaries` if there is none on the path
 */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const file = findRedisServer();
  if (file === null)
    throw new ServerFailed('no-binaries', 'neither redis-server nor valkey-server is on the path');
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });

  const ownerFile = join(dataDir, 'owner.pid');
  const pidFile = join(dataDir, 'redis.pid');
  const orphanPid = await readPidFile(pidFile);
  if (orphanPid !== null) {
    const ownerPid = await readPidFile(ownerFile);
    const program = '-server';
    await stopOrphanedServer({ pid: orphanPid, ownerPid, folder: dataDir, program, steps: STOP_STEPS });
    await rm(pidFile, { force: true });
  }
  await writeFile(ownerFile, `${process.pid}\n`);

  while (true) {
    const { port } = await findFreePort(options.port);
    const server = await spawnServer({
      file,
      args: serverArguments(options, port),
      cwd: dataDir,
      env: serverEnvironment(),
    });
    if (await isReady(server, port)) {
      return {
        url: `redis://127.0.0.1:${port}`,
        port,
        pid: server.pid,
        exited: server.exited,
        stop: () => server.stop(STOP_STEPS),
        kill: () => server.stop([]),
      };
    }
    await server.stop([]);
    if (await isPortFree(port)) {
      throw new ServerFailed('not-started', `${file} did not start in ${dataDir}`, server.lastLogLines());
    }
  }
}

/** Paths are relative to the working folder, which avoids Redis' quoting rules. */
function serverArguments({ appendOnly = false, databases = 16 }: RedisOptions, port: number): string[] {
  const settings = {
    bind: '127.0.0.1',
    port: String(port),
    dir: '.',
    pidfile: 'redis.pid',
    daemonize: 'no',
    save: '',
    appendonly: appendOnly ? 'yes' : 'no',
    'maxmemory-policy': 'noeviction',
    // A queue job is a small hash with values slightly over the default of 64 bytes; as a listpack it takes half of the
    // memory.
    'hash-max-listpack-value': '256',
    databases: String(databases),
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

async function isReady(server: ServerProcess, port: number): Promise<boolean> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!server.hasExited() && Date.now() < deadline) {
    if ((await readServerPid(port)) === server.pid) return true;
    await wait(POLL_MS);
  }
  return false;
}

/**
 * Returns the pid of the server that responds on the port, once it has loaded its data. Distinguishes this server from
 * another one that took the port first.
 */
async function readServerPid(port: number): Promise<number | null> {
  const client = new Redis({
    host: '127.0.0.1',
    port,
    lazyConnect: true,
    retryStrategy: () => null,
    enableReadyCheck: false,
    // A refused connection would otherwise delay the process by two seconds after disconnect().
    disconnectTimeout: 100,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.ping();
    const info = await client.info('server');
    return Number(/^process_id:(\d+)/m.exec(info)?.[1]) || null;
  } catch {
    return null;
  } finally {
    client.disconnect();
  }
}
