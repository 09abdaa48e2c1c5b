import { readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Client, escapeIdentifier } from 'pg';
import {
  ensureCluster,
  ensureUsableBinaries,
  findInstalledBinaries,
  type PostgresBinaries,
  SUPERUSER,
} from './postgres-cluster.ts';
import { ensureServerFolder, readPidFile, stopOrphanedServer } from './server-folder.ts';
import {
  type Account,
  findFreePort,
  isPortFree,
  ServerFailed,
  type ServerProcess,
  type StopStep,
  selectServerAccount,
  serverEnvironment,
  spawnServer,
} from './server-process.ts';

export interface PostgresOptions {
  /** Created if it does not exist. Contains `data`, `password` and `owner.pid`. */
  dataDir: string;
  /** Preferred port; if it is in use, another is chosen. Default: any free port. */
  port?: number;
  /** Server settings that override the defaults, as in postgresql.conf. */
  settings?: Record<string, string>;
  /** Created if it does not exist. Default `runhook`. */
  database?: string;
  /** Called with each line of the server's log, and with messages about the folders that are used. */
  onLog?: (line: string) => void;
  /** For tests: overrides the installed binaries and the folder /var/tmp. */
  internals?: { binaries?: PostgresBinaries; fallbackFolder?: string };
}

export interface RunningPostgres {
  /** `postgres://user:password@127.0.0.1:port/database` */
  url: string;
  port: number;
  pid: number;
  /** Fast shutdown: ends sessions and writes data. Takes at most about 15 seconds. */
  stop(): Promise<void>;
  /** Sends SIGKILL, for tests of failures. The next start recovers. */
  kill(): Promise<void>;
  /** Resolves with the exit code, or null if a signal ended the server. Never rejects. */
  exited: Promise<number | null>;
}

const READY_TIMEOUT_MS = 60_000;
const LOCKED_RETRY_MS = 10_000;
const POLL_MS = 20;
/** Steps of a stop: PostgreSQL performs a fast shutdown on SIGINT and an immediate one on SIGQUIT. */
const STOP_STEPS: readonly StopStep[] = [
  { signal: 'SIGINT', graceMs: 12_000 },
  { signal: 'SIGQUIT', graceMs: 3_000 },
];
/** SQLSTATE lock_file_exists: also reported while the backends of a killed server are still ending. */
const LOCK_FILE_EXISTS = / F0001 /;

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] %e ',
};

/**
 * Starts a PostgreSQL server on 127.0.0.1 from the binaries that npm installed; as root it runs under an unprivileged
 * account. A server that a killed parent left on this folder is stopped first. The caller must stop the server: there
 * is no exit hook, and Ctrl-C does not reach it.
 *
 * @throws {ServerFailed} with the server's last log lines
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const { database = 'runhook', settings = {}, onLog = () => undefined, internals = {} } = options;
  const dataDir = resolve(options.dataDir);
  const account = selectServerAccount(dataDir);
  const base = await ensureServerFolder(dataDir, account, onLog, internals.fallbackFolder);
  const binaries = await ensureUsableBinaries(
    internals.binaries ?? findInstalledBinaries(),
    base,
    account,
    onLog,
  );
  const isDurable = settings.fsync !== 'off';
  const { folder, password } = await ensureCluster({ dataDir, base, binaries, account, isDurable });

  const ownerFile = join(dataDir, 'owner.pid');
  await stopOrphanedPostgres(folder, await readPidFile(ownerFile), onLog);
  await writeFile(ownerFile, `${process.pid}\n`);

  const { server, port } = await startOnFreePort(
    { ...options, settings, onLog },
    { folder, base, binaries, account },
  );
  const urlOf = (name: string) =>
    `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${encodeURIComponent(name)}`;
  try {
    await ensureDatabase(urlOf('postgres'), database);
  } catch (error) {
    await server.stop(STOP_STEPS);
    throw new ServerFailed('not-started', `PostgreSQL: ${(error as Error).message}`, server.lastLogLines());
  }
  return {
    url: urlOf(database),
    port,
    pid: server.pid,
    exited: server.exited,
    stop: () => server.stop(STOP_STEPS),
    kill: () => server.stop([]),
  };
}

/** Stops a server that was left on the folder, and removes the lock file of a server that no longer runs. */
async function stopOrphanedPostgres(
  folder: string,
  ownerPid: number | null,
  onLog: (line: string) => void,
): Promise<void> {
  const lockFile = join(folder, 'postmaster.pid');
  const pid = await readPidFile(lockFile);
  if (pid === null) return;
  const outcome = await stopOrphanedServer({ pid, ownerPid, folder, program: 'postgres', steps: STOP_STEPS });
  if (outcome === 'stopped')
    onLog(`stopped the PostgreSQL (pid ${pid}) that an earlier run left on ${folder}`);
  // After a reboot the pid in the file may belong to another process of this account, which PostgreSQL would mistake
  // for a server.
  await rm(lockFile, { force: true });
}

interface Location {
  folder: string;
  base: string;
  binaries: string;
  account: Account | null;
}

async function startOnFreePort(
  options: PostgresOptions & { settings: Record<string, string> },
  location: Location,
): Promise<{ server: ServerProcess; port: number }> {
  const deadline = Date.now() + LOCKED_RETRY_MS;
  while (true) {
    const { port } = await findFreePort(options.port);
    const server = await spawnPostgres(options, location, port);
    if (await isReady(server, location.folder)) return { server, port };

    await server.stop([]);
    const log = server.lastLogLines();
    const isWorthRetrying = log.some((line) => LOCK_FILE_EXISTS.test(line)) || !(await isPortFree(port));
    if (!isWorthRetrying || Date.now() > deadline) {
      throw new ServerFailed('not-started', `PostgreSQL did not start on ${location.folder}`, log);
    }
    await wait(100);
  }
}

function spawnPostgres(
  options: PostgresOptions & { settings: Record<string, string> },
  { folder, base, binaries, account }: Location,
  port: number,
): Promise<ServerProcess> {
  const settings = { ...SETTINGS, ...options.settings, port: String(port) };
  return spawnServer({
    file: join(binaries, 'bin', 'postgres'),
    args: ['-D', folder, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    cwd: base,
    env: serverEnvironment(),
    ...(account === null ? {} : { uid: account.uid, gid: account.gid }),
    ...(options.onLog === undefined ? {} : { onLog: options.onLog }),
  });
}

/**
 * Reads the lock file to determine whether this server accepts connections; a connection to the port might reach
 * another server.
 */
async function isReady(server: ServerProcess, folder: string): Promise<boolean> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!server.hasExited() && Date.now() < deadline) {
    const lines = (await readFile(join(folder, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
    if (lines[0]?.trim() === String(server.pid) && lines[7]?.trim() === 'ready') return true;
    await wait(POLL_MS);
  }
  return false;
}

async function ensureDatabase(url: string, database: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [database]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${escapeIdentifier(database)}`);
  } finally {
    await client.end();
  }
}
