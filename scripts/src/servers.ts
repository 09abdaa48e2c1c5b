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
import type { Running } from './child.ts';
import { lastLogLines } from './child.ts';
import type { Home } from './home.ts';
import type { StartSettings } from './settings.ts';
import { type KeepRunningSurroundings, keepRunning } from './supervise.ts';

const POSTGRES_PORT = 54_329;
const REDIS_PORT = 63_790;
const POSTGRES_STOP_TIMEOUT_MS = 25_000;
const REDIS_STOP_TIMEOUT_MS = 15_000;
const LAST_LINES = 8;

/** Is a database or queue that the services use: a server that `npm start` runs, or an external one. */
export interface ServerInUse {
  /** May change when an embedded server is restarted and its port was taken in the meantime. */
  url(): string;
  /** Null for an external server. */
  pid(): number | null;
}

interface ServerSurroundings extends KeepRunningSurroundings {
  home: Home;
  onStartedAgain(): Promise<void>;
}

interface OwnServer extends Running {
  url: string;
  port: number;
}

/** Opens `DATABASE_URL`, or an embedded PostgreSQL below the home folder. */
export async function openDatabaseServer(
  surroundings: ServerSurroundings,
  settings: StartSettings,
): Promise<ServerInUse> {
  const { terminal, home, onStartedAgain } = surroundings;
  const { databaseUrl } = settings;
  if (databaseUrl !== null) return given(databaseUrl);
  const logFile = join(home.logs, 'postgres.log');
  const server = await terminal.step(
    'PostgreSQL',
    () =>
      keepRunning<OwnServer>(surroundings, {
        name: 'PostgreSQL',
        start: (_, previous) => startOwnPostgres(home.postgres, logFile, previous?.port ?? POSTGRES_PORT),
        lastLines: () => lastLogLines(logFile, LAST_LINES),
        onStartedAgain,
        stopTimeoutMs: POSTGRES_STOP_TIMEOUT_MS,
      }),
    ({ current }) =>
      `PostgreSQL ${versionOf(home)}, embedded, on port ${portText(current.port, POSTGRES_PORT)}`,
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
  surroundings: ServerSurroundings,
  settings: StartSettings,
  database: ServerInUse,
): Promise<ServerInUse> {
  const { terminal, home, onStartedAgain } = surroundings;
  if (settings.queueUrl !== null) {
    const { queueUrl } = settings;
    return await terminal.step(
      'queue',
      () => given(queueUrl),
      () => `queue: the ${queueBackendName(queueUrl)} of QUEUE_URL`,
    );
  }
  const file = findRedisServer();
  const inDatabase = { url: database.url, pid: () => null };
  if (file === null) {
    const reason = 'no redis-server or valkey-server is on the path';
    return await terminal.step(
      'queue',
      () => inDatabase,
      () => `queue: in PostgreSQL, because ${reason}`,
    );
  }
  const name = basename(file);
  const server = await terminal.step(
    `queue: ${name}`,
    () =>
      keepRunning<OwnServer>(surroundings, {
        name,
        start: (_, previous) => startOwnRedis(home.redis, previous?.port ?? REDIS_PORT),
        lastLines: () => [],
        onStartedAgain,
        stopTimeoutMs: REDIS_STOP_TIMEOUT_MS,
      }),
    ({ current }) => `queue: ${name} on port ${portText(current.port, REDIS_PORT)}, append-only`,
  );
  return { url: () => server.current.url, pid: () => server.current.pid };
}

function given(url: string): ServerInUse {
  return { url: () => url, pid: () => null };
}

async function startOwnPostgres(dataDir: string, logFile: string, port: number): Promise<OwnServer> {
  const log = createWriteStream(logFile, { flags: 'a', mode: 0o600 });
  // A last line may arrive after the end of the stream.
  log.on('error', () => undefined);
  try {
    const server = await startPostgres({ dataDir, port, onLog: (line) => log.write(`${line}\n`) });
    void server.exited.then(() => log.end());
    return ownServer(server);
  } catch (error) {
    log.end();
    throw error;
  }
}

async function startOwnRedis(dataDir: string, port: number): Promise<OwnServer> {
  return ownServer(await startRedis({ dataDir, port, appendOnly: true }));
}

function ownServer(server: RunningPostgres | RunningRedis): OwnServer {
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
function versionOf(home: Home): string {
  return readFileSync(join(home.postgres, 'data', 'PG_VERSION'), 'utf8').trim();
}

function portText(port: number, preferred: number): string {
  return port === preferred ? String(port) : `${port}, because ${preferred} is taken`;
}
