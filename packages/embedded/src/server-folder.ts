import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  readFile,
  readlink,
  realpath,
  rm,
  rmdir,
  stat,
  symlink,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Account, ServerFailed, type StopStep } from './server-process.ts';

/** Mode of a folder that other accounts may pass through but not list, which is sufficient for the server's account. */
const PASSABLE_MODE = 0o711;

/**
 * Returns the folder for the server's own files (data, and possibly binaries): `dataDir`, or, if the server's account
 * cannot use that (a checkout under /root, a file system without owners or modes), a folder in /var/tmp, to which
 * `dataDir`/data is a symbolic link. Later starts use the location of the existing data.
 */
export async function ensureServerFolder(
  dataDir: string,
  account: Account | null,
  onLog: (line: string) => void,
  fallbackFolder = '/var/tmp',
): Promise<string> {
  // Sets the mode only of a folder that was created here, because the umask may be 077.
  if ((await mkdir(dataDir, { recursive: true })) !== undefined) await chmod(dataDir, PASSABLE_MODE);
  const data = join(dataDir, 'data');
  const existingKind = await readPathKind(data);
  if (existingKind === 'link') {
    const target = await readlink(data);
    if ((await readPathKind(target)) === 'folder') return dirname(target);
    onLog(`${target}, where the data was, is gone: starting with an empty database`);
    await rm(data);
  }
  if (await isUsable(dataDir, account)) return dataDir;
  if (existingKind === 'folder') {
    throw new ServerFailed(
      'no-folder',
      `${account?.name ?? 'this account'} cannot reach the database in ${data}: every folder above it must allow passing through (chmod o+x)`,
    );
  }

  const fallback = join(fallbackFolder, `runhook-${hashOf(await realpath(dataDir))}`);
  await createOwnFolder(fallback);
  if (!(await isUsable(fallback, account))) {
    throw new ServerFailed(
      'no-folder',
      `${account?.name ?? 'this account'} can use neither ${dataDir} nor ${fallback}`,
    );
  }
  await symlink(join(fallback, 'data'), data);
  onLog(`${account?.name ?? 'this account'} cannot use ${dataDir}: the database lies in ${fallback}`);
  return fallback;
}

/** Tests whether the account can have and reach a folder of mode 700. */
async function isUsable(folder: string, account: Account | null): Promise<boolean> {
  const probe = join(folder, `probe-${randomBytes(6).toString('hex')}`);
  await mkdir(probe, { mode: 0o700 });
  try {
    if (account !== null) await chown(probe, account.uid, account.gid);
    const { uid, mode } = await stat(probe);
    if (process.platform !== 'win32' && (mode & 0o777) !== 0o700) return false;
    if (account === null) return true;
    const { status } = spawnSync('/bin/sh', ['-c', 'test -w "$1" && test -x "$1"', 'sh', probe], {
      cwd: '/',
      uid: account.uid,
      gid: account.gid,
    });
    return uid === account.uid && status === 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return false;
    throw error;
  } finally {
    await rmdir(probe);
  }
}

/** Rejects a folder that another account created: the name is predictable and /var/tmp is writable for all accounts. */
async function createOwnFolder(folder: string): Promise<void> {
  await mkdir(folder, { mode: PASSABLE_MODE }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const stats = await lstat(folder);
  if (!stats.isDirectory() || stats.uid !== (process.getuid?.() ?? stats.uid)) {
    throw new ServerFailed(
      'no-folder',
      `${folder} is needed for the database, but belongs to another account`,
    );
  }
  await chmod(folder, PASSABLE_MODE);
}

async function readPathKind(path: string): Promise<'none' | 'link' | 'folder'> {
  try {
    return (await lstat(path)).isSymbolicLink() ? 'link' : 'folder';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'none';
    throw error;
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

const POLL_MS = 50;

/**
 * Stops a server that was left on the folder, with `steps` and finally SIGKILL. A server whose parent was killed
 * continues to run; a second server on the folder would fail (PostgreSQL) or corrupt the files (Redis).
 *
 * `pid` is read from files of the folder and may belong to any process after a crash or a reboot, so only a process
 * that works in `folder` is stopped. `ownerPid` is the process that started the server; while it is the server's
 * parent, the server is in use, and this throws `in-use`.
 */
export async function stopOrphanedServer(options: {
  pid: number;
  ownerPid: number | null;
  folder: string;
  program: string;
  steps: readonly StopStep[];
}): Promise<'stopped' | 'none'> {
  const { pid, ownerPid, folder, program, steps } = options;
  if (!(await isRunningIn(pid, folder, program))) return 'none';
  if (ownerPid !== null && readParentPid(pid) === ownerPid) {
    throw new ServerFailed('in-use', `${folder} is in use by ${program} (pid ${pid}) of process ${ownerPid}`);
  }
  for (const { signal, graceMs } of [...steps, { signal: 'SIGKILL', graceMs: 5_000 } as const]) {
    process.kill(pid, signal);
    if (await exitsWithin(pid, graceMs)) return 'stopped';
  }
  throw new ServerFailed('in-use', `${program} (pid ${pid}) on ${folder} does not end`);
}

async function isRunningIn(pid: number, folder: string, program: string): Promise<boolean> {
  if (pid === process.pid || !isAlive(pid)) return false;
  if (process.platform === 'linux') {
    try {
      return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(folder));
    } catch {
      return false;
    }
  }
  // Other systems have no /proc, so the command line is searched for the folder.
  const args = readPsColumn('args', pid);
  return args.includes(program) && args.includes(folder);
}

/** A zombie counts as ended, because in a container there may be no process to reap it. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return !readProcessState(pid).startsWith('Z');
}

async function exitsWithin(pid: number, graceMs: number): Promise<boolean> {
  const deadline = Date.now() + graceMs;
  while (Date.now() < deadline) {
    if (!isAlive(pid)) return true;
    await wait(POLL_MS);
  }
  return !isAlive(pid);
}

function readProcessState(pid: number): string {
  return process.platform === 'linux' ? (readProcStat(pid)[0] ?? 'Z') : readPsColumn('stat', pid);
}

function readParentPid(pid: number): number | null {
  return Number(process.platform === 'linux' ? readProcStat(pid)[1] : readPsColumn('ppid', pid)) || null;
}

/**
 * Returns state and parent from /proc, because slim containers have no ps. The preceding process name may contain any
 * character, including `)`.
 */
function readProcStat(pid: number): string[] {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return line.slice(line.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

function readPsColumn(column: string, pid: number): string {
  const { stdout } = spawnSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' });
  return stdout?.trim() ?? '';
}

/** Returns the first line of a pid file as a number, or null if there is none. */
export async function readPidFile(file: string): Promise<number | null> {
  try {
    const [firstLine = ''] = (await readFile(file, 'utf8')).split('\n');
    const pid = Number(firstLine.trim());
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}
