import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, readlink, realpath } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { ServerFailed } from './server-failed.ts';
import type { StopStep } from './server-process.ts';

const POLL_MS = 50;

/**
 * A server whose parent was killed goes on running on its folder, and a second one beside it would be refused
 * (PostgreSQL) or would ruin the files (Redis). Stops it, by `steps` and at last SIGKILL.
 *
 * `pid` is what the folder's own files name, which after a crash or a reboot may be anybody's process: only one that
 * really works in `folder` is touched. `ownerPid` is the process that started it; while that one is alive the server
 * is not left over, and this throws `in-use`.
 */
export async function stopLeftOverServer(options: {
  pid: number;
  ownerPid: number | null;
  folder: string;
  program: string;
  steps: readonly StopStep[];
}): Promise<'stopped' | 'none'> {
  const { pid, ownerPid, folder, program, steps } = options;
  if (!(await worksIn(pid, folder, program))) return 'none';
  if (ownerPid !== null && parentOf(pid) === ownerPid) {
    throw new ServerFailed('in-use', `${folder} is in use by ${program} (pid ${pid}) of process ${ownerPid}`);
  }
  for (const { signal, graceMs } of [...steps, { signal: 'SIGKILL', graceMs: 5_000 } as const]) {
    process.kill(pid, signal);
    if (await isGoneWithin(pid, graceMs)) return 'stopped';
  }
  throw new ServerFailed('in-use', `${program} (pid ${pid}) on ${folder} does not end`);
}

async function worksIn(pid: number, folder: string, program: string): Promise<boolean> {
  if (pid === process.pid || !isAlive(pid)) return false;
  if (process.platform === 'linux') {
    try {
      return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(folder));
    } catch {
      return false;
    }
  }
  // Elsewhere the command line has to do; it names the folder.
  const args = ps('args', pid);
  return args.includes(program) && args.includes(folder);
}

/** A zombie counts as gone: in a container nothing may ever reap it. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return !stateOf(pid).startsWith('Z');
}

async function isGoneWithin(pid: number, graceMs: number): Promise<boolean> {
  const deadline = Date.now() + graceMs;
  while (Date.now() < deadline) {
    if (!isAlive(pid)) return true;
    await wait(POLL_MS);
  }
  return !isAlive(pid);
}

function stateOf(pid: number): string {
  return process.platform === 'linux' ? (procStat(pid)[0] ?? 'Z') : ps('stat', pid);
}

function parentOf(pid: number): number | null {
  return Number(process.platform === 'linux' ? procStat(pid)[1] : ps('ppid', pid)) || null;
}

/** State and parent, from /proc because slim containers have no ps. The name before them may hold anything, even `)`. */
function procStat(pid: number): string[] {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return line.slice(line.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

function ps(column: string, pid: number): string {
  const { stdout } = spawnSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' });
  return stdout?.trim() ?? '';
}

/** The first line of a pid file as a number; null when there is none. */
export async function readPidFile(file: string): Promise<number | null> {
  try {
    const [firstLine = ''] = (await readFile(file, 'utf8')).split('\n');
    const pid = Number(firstLine.trim());
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}
