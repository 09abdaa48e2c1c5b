import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * - `no-binaries`: there are no PostgreSQL binaries for this platform, or no redis-server on the path
 * - `no-account`: root found no unprivileged account that PostgreSQL could run as
 * - `no-folder`: no folder that the account can use
 * - `in-use`: the process that started the folder's server is still alive, or that server does not end
 * - `not-started`: the server ended, or was not ready in time
 */
export type ServerFailedCode = 'no-binaries' | 'no-account' | 'no-folder' | 'in-use' | 'not-started';

/** A server could not be started. The message is for operators and ends with the server's last log lines, if any. */
export class ServerFailed extends Error {
  readonly code: ServerFailedCode;

  constructor(code: ServerFailedCode, message: string, logLines: readonly string[] = []) {
    super(logLines.length === 0 ? message : `${message}\n${logLines.map((line) => `  ${line}`).join('\n')}`);
    this.name = 'ServerFailed';
    this.code = code;
  }
}

const LOG_LINES_MAX = 30;
/** Time limit for reading the output pipes of a server that has exited. */
const PIPE_DRAIN_MS = 500;

/** Returns the path of the first of the programs that PATH contains, or null. */
export function findProgram(names: readonly string[]): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const files = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return files.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A step of a stop: sends the signal, then waits for the process. */
export interface StopStep {
  signal: NodeJS.Signals;
  graceMs: number;
}

/** The command that starts a server. `uid` and `gid` are set only if it must run as another account. */
export interface ServerCommand {
  file: string;
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  onLog?: (line: string) => void;
}

/** A running server process. */
export interface ServerProcess {
  pid: number;
  /** Resolves with the exit code, or null if a signal ended the process. Never rejects. */
  exited: Promise<number | null>;
  hasExited(): boolean;
  lastLogLines(): string[];
  /** Performs the steps until the process has exited; the last one is always SIGKILL. */
  stop(steps: readonly StopStep[]): Promise<void>;
}

/**
 * Starts the server in a separate session, because Ctrl-C in the terminal would otherwise stop the database before the
 * services have finished their work.
 */
export async function spawnServer(command: ServerCommand): Promise<ServerProcess> {
  const { file, args, cwd, env, uid, gid, onLog } = command;
  const child = spawn(file, args, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  const logLines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      logLines.push(line);
      if (logLines.length > LOG_LINES_MAX) logLines.shift();
      onLog?.(line);
    });
  }
  let hasExited = false;
  // Waits for 'close' instead of 'exit', so that the last log lines have been read.
  const closed = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      hasExited = true;
      // A grandchild may keep the pipes open after the server has exited.
      void waitAtMost(closed, PIPE_DRAIN_MS).then(() => resolve(code));
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.on('error', (error) =>
      reject(new ServerFailed('not-started', `cannot start ${file}: ${error.message}`)),
    );
  });
  const pid = child.pid as number;

  return {
    pid,
    exited,
    hasExited: () => hasExited,
    lastLogLines: () => [...logLines],
    async stop(steps) {
      for (const { signal, graceMs } of steps) {
        if (hasExited) break;
        child.kill(signal);
        await waitAtMost(exited, graceMs);
      }
      if (!hasExited) child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Clears the timer of the wait, which would otherwise keep the process alive. */
async function waitAtMost(settled: Promise<unknown>, graceMs: number): Promise<void> {
  const timer = new AbortController();
  const timeout = wait(graceMs, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([settled, timeout]);
  timer.abort();
}

/**
 * Returns the environment of a server without the caller's other variables: PGDATA, PGPORT, LC_ALL or TZ would change
 * the cluster, and secrets must not be passed on.
 */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const inheritedNames = ['PATH', 'LD_LIBRARY_PATH', 'SystemRoot', 'TEMP', 'TMP'];
  const environment: NodeJS.ProcessEnv = { LC_ALL: 'C', TZ: 'UTC' };
  for (const name of inheritedNames) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

/** The account that a server runs as. */
export interface Account {
  uid: number;
  gid: number;
  name: string;
}

const ACCOUNT_CANDIDATES = ['postgres', 'nobody'];

/**
 * Returns the account for PostgreSQL, which refuses to run as root: the owner of existing data, or else an unprivileged
 * account of the system. No account is created, so that nothing remains on the machine. Null: the current account.
 */
export function selectServerAccount(dataDir: string): Account | null {
  if (process.getuid?.() !== 0) return null;
  const owner = readOwner(join(dataDir, 'data'));
  if (owner !== null && owner.uid !== 0) return owner;
  for (const name of ACCOUNT_CANDIDATES) {
    const uid = readId('-u', name);
    const gid = readId('-g', name);
    if (uid !== null && gid !== null && uid !== 0) return { uid, gid, name };
  }
  throw new ServerFailed(
    'no-account',
    `PostgreSQL does not run as root, and this system has none of the accounts ${ACCOUNT_CANDIDATES.join(', ')}: run as another user`,
  );
}

function readOwner(folder: string): Account | null {
  const stats = statSync(folder, { throwIfNoEntry: false });
  return stats === undefined ? null : { uid: stats.uid, gid: stats.gid, name: `uid ${stats.uid}` };
}

function readId(flag: '-u' | '-g', name: string): number | null {
  const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' });
  const id = Number(stdout?.trim());
  return status === 0 && Number.isSafeInteger(id) && id >= 0 ? id : null;
}

const HOST = '127.0.0.1';
const NEXT_PORTS_MAX = 20;

/**
 * Returns a free TCP port on 127.0.0.1: `preferred`, one of the next twenty, or any. `wasTaken` means that `preferred`
 * was requested but in use. The port is not reserved, so the caller must handle that it is taken in the meantime.
 */
export async function findFreePort(preferred?: number): Promise<{ port: number; wasTaken: boolean }> {
  if (preferred === undefined || preferred === 0) return { port: await findAnyFreePort(), wasTaken: false };
  const last = Math.min(preferred + NEXT_PORTS_MAX, 65_535);
  for (let port = preferred; port <= last; port += 1) {
    if (await isPortFree(port)) return { port, wasTaken: port !== preferred };
  }
  return { port: await findAnyFreePort(), wasTaken: true };
}

/**
 * Connects and listens, because some systems allow binding 127.0.0.1 while another process serves the port on all
 * addresses.
 */
export async function isPortFree(port: number): Promise<boolean> {
  return !(await acceptsConnections(port)) && (await probeListen(port)) !== null;
}

async function findAnyFreePort(): Promise<number> {
  const port = await probeListen(0);
  if (port === null) throw new Error(`no free port on ${HOST}`);
  return port;
}

function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function probeListen(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ host: HOST, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : null));
    });
  });
}
