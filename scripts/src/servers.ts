import { createWriteStream, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  findRedisServer,
  type RunningPostgres,
  type RunningRedis,
  startPostgres,
  startRedis,
} from '@runhook/embedded';
import { queueBackendName } from '@runhook/queue';
import type { RunningProcess } from './child.ts';
import { lastLogLines } from './child.ts';
import type { Home } from './home.ts';
import type { StartSettings } from './settings.ts';
import { type SupervisionContext, superviseProcess } from './supervise.ts';

const POSTGRES_PORT = 54_329;
const REDIS_PORT = 63_790;
const POSTGRES_STOP_TIMEOUT_MS = 25_000;
const REDIS_STOP_TIMEOUT_MS = 15_000;
const LAST_LINES = 8;

/** A database or queue that the services use: a server that `npm start` runs, or an external one. */
export interface ServerAddress {
  /** May change when an embedded server is restarted and its port was taken in the meantime. */
  url(): string;
  /** Null for an external server. */
  pid(): number | null;
}

interface ServerContext extends SupervisionContext {
  home: Home;
  onRestart(): Promise<void>;
}

interface OwnServer extends RunningProcess {
  url: string;
  port: number;
}

/** Opens `DATABASE_URL`, or an embedded PostgreSQL below the home folder. */
export async function openDatabaseServer(
  context: ServerContext,
  settings: StartSettings,
): Promise<ServerAddress> {
  const { terminal, home, onRestart } = context;
  const { databaseUrl } = settings;
  if (databaseUrl !== null) return externalServer(databaseUrl);
  const logFile = join(home.logs, 'postgres.log');
  const server = await terminal.step(
    'PostgreSQL',
    () =>
      superviseProcess<OwnServer>(context, {
        name: 'PostgreSQL',
        start: (_, previous) => startOwnPostgres(home.postgres, logFile, previous?.port ?? POSTGRES_PORT),
        lastLines: () => lastLogLines(logFile, LAST_LINES),
        onRestart,
        stopTimeoutMs: POSTGRES_STOP_TIMEOUT_MS,
      }),
    ({ current }) =>
      `PostgreSQL ${readMajorVersion(home)}, embedded, on port ${formatPort(current.port, POSTGRES_PORT)}`,
  );
  const folder = dirname(realpathSync(join(home.postgres, 'data')));
  if (folder !== realpathSync(home.postgres)) {
    terminal.note(
      `the database is in ${folder}: the account that runs PostgreSQL cannot use ${home.postgres}`,
    );
  }
  return { url: () => server.current.url, pid: () => server.current.pid };
}

/** Opens `QUEUE_URL`, or a local Redis or Valkey if one is installed, or the queue in the database. */
export async function openQueueServer(
  context: ServerContext,
  settings: StartSettings,
  database: ServerAddress,
): Promise<ServerAddress> {
  const { terminal, home, onRestart } = context;
  if (settings.queueUrl !== null) {
    const { queueUrl } = settings;
    return await terminal.step(
      'queue',
      () => externalServer(queueUrl),
      () => `queue: the ${queueBackendName(queueUrl)} of QUEUE_URL`,
    );
  }
  const file = findRedisServer();
  const databaseQueue = { url: database.url, pid: () => null };
  if (file === null) {
    const reason = 'no redis-server or valkey-server is on the path';
    return await terminal.step(
      'queue',
      () => databaseQueue,
      () => `queue: in PostgreSQL, because ${reason}`,
    );
  }
  const name = basename(file);
  const server = await terminal.step(
    `queue: ${name}`,
    () =>
      superviseProcess<OwnServer>(context, {
        name,
        start: (_, previous) => startOwnRedis(home.redis, previous?.port ?? REDIS_PORT),
        lastLines: () => [],
        onRestart,
        stopTimeoutMs: REDIS_STOP_TIMEOUT_MS,
      }),
    ({ current }) => `queue: ${name} on port ${formatPort(current.port, REDIS_PORT)}, append-only`,
  );
  return { url: () => server.current.url, pid: () => server.current.pid };
}

function externalServer(url: string): ServerAddress {
  return { url: () => url, pid: () => null };
}

async function startOwnPostgres(dataDir: string, logFile: string, port: number): Promise<OwnServer> {
  const log = createWriteStream(logFile, { flags: 'a', mode: 0o600 });
  // A last line may arrive after the end of the stream.
  log.on('error', () => undefined);
  try {
    const server = await startPostgres({ dataDir, port, onLog: (line) => log.write(`${line}\n`) });
    void server.exited.then(() => log.end());
    return toOwnServer(server);
  } catch (error) {
    log.end();
    throw error;
  }
}

async function startOwnRedis(dataDir: string, port: number): Promise<OwnServer> {
  return toOwnServer(await startRedis({ dataDir, port, appendOnly: true }));
}

function toOwnServer(server: RunningPostgres | RunningRedis): OwnServer {
  return {
    url: server.url,
    port: server.port,
    pid: server.pid,
    exited: server.exited.then((code) => (code === null ? 'was ended by a signal' : `ended with ${code}`)),
    stop: () => server.stop(),
    kill: () => void server.kill(),
  };
}

/** Returns the major version of the data. */
function readMajorVersion(home: Home): string {
  return readFileSync(join(home.postgres, 'data', 'PG_VERSION'), 'utf8').trim();
}

function formatPort(port: number, preferred: number): string {
  return port === preferred ? String(port) : `${port}, because ${preferred} is taken`;
}
