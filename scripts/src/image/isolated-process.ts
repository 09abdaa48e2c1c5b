import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

export interface Isolation {
  /** Whether the program is process 1 of its own namespace and sees a file system that nobody can write to. */
  isContainerLike: boolean;
  /** For people: how the program is kept apart. */
  description: string;
}

export interface IsolatedProcess {
  output(): string;
  /** SIGTERM to the program itself. */
  terminate(): void;
  /** The exit code; null when a signal ended it. */
  exited: Promise<number | null>;
}

const UID = 10_001;
const POLL_MS = 20;
const STARTED_TIMEOUT_MS = 5_000;
/** A private view of the mounts, read-only; the program comes first among the processes it can see. */
const NAMESPACES = ['--mount', '--pid', '--fork', '--mount-proc'];
const READ_ONLY_THEN = `mount -o remount,bind,ro / && exec setpriv --reuid ${UID} --regid ${UID} --clear-groups "$@"`;

/** What this machine lets us do: all of it as root on Linux, else the account's own rights only. */
export function findIsolation(): Isolation {
  const probe = spawnSync('unshare', [...NAMESPACES, 'sh', '-c', READ_ONLY_THEN, 'sh', 'true']);
  if (probe.status === 0) {
    return {
      isContainerLike: true,
      description: `process 1 of its own namespace, user ${UID}, read-only root file system, empty environment`,
    };
  }
  return {
    isContainerLike: false,
    description: 'an empty environment and files without write permission (no namespaces here)',
  };
}

/** Starts a program with nothing but the variables given. */
export async function startIsolated(
  isolation: Isolation,
  file: string,
  args: readonly string[],
  options: { cwd: string; environment: Record<string, string> },
): Promise<IsolatedProcess> {
  const settings = Object.entries(options.environment).map(([name, value]) => `${name}=${value}`);
  const program = ['env', '-i', ...settings, file, ...args];
  const [command, ...rest] = isolation.isContainerLike
    ? ['unshare', ...NAMESPACES, 'sh', '-c', READ_ONLY_THEN, 'sh', ...program]
    : program;
  const child = spawn(command as string, rest, {
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH },
  });
  const chunks: string[] = [];
  child.stdout.on('data', (chunk) => chunks.push(String(chunk)));
  child.stderr.on('data', (chunk) => chunks.push(String(chunk)));
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  const pid = isolation.isContainerLike ? await childOf(child) : child.pid;
  return {
    output: () => chunks.join(''),
    terminate: () => void (pid !== undefined && child.exitCode === null && process.kill(pid, 'SIGTERM')),
    exited,
  };
}

/** unshare stays in between and passes no signal on. */
async function childOf(parent: ChildProcess): Promise<number | undefined> {
  const deadline = Date.now() + STARTED_TIMEOUT_MS;
  while (parent.exitCode === null && Date.now() < deadline) {
    const [pid] = readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, 'utf8').trim().split(' ');
    if (pid) return Number(pid);
    await wait(POLL_MS);
  }
  return undefined;
}
