import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, chown, lstat, mkdir, readlink, realpath, rm, rmdir, stat, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Account } from './server-account.ts';
import { ServerFailed } from './server-failed.ts';

/** Anyone may pass through, only the owner may look around: the server's account needs no more. */
const PASSABLE = 0o711;

/**
 * The folder under which the server's own files (data, and perhaps binaries) lie: `dataDir`, or, where the server's
 * account cannot use that (a checkout under /root, a file system without owners or modes), a folder of ours in
 * /var/tmp, to which `dataDir`/data then is a symbolic link. What `dataDir` holds decides on later starts.
 */
export async function serverPlace(
  dataDir: string,
  account: Account | null,
  onLog: (line: string) => void,
  elsewhere = '/var/tmp',
): Promise<string> {
  // Only a folder made here gets its mode set: the umask may be 077.
  if ((await mkdir(dataDir, { recursive: true })) !== undefined) await chmod(dataDir, PASSABLE);
  const data = join(dataDir, 'data');
  const earlier = await kindOf(data);
  if (earlier === 'link') {
    const target = await readlink(data);
    if ((await kindOf(target)) === 'folder') return dirname(target);
    onLog(`${target}, where the data was, is gone: starting with an empty database`);
    await rm(data);
  }
  if (await isUsable(dataDir, account)) return dataDir;
  if (earlier === 'folder') {
    throw new ServerFailed(
      'no-place',
      `${account?.name ?? 'this account'} cannot reach the database in ${data}: every folder above it must allow passing through (chmod o+x)`,
    );
  }

  const moved = join(elsewhere, `runhook-${hashOf(await realpath(dataDir))}`);
  await claimFolder(moved);
  if (!(await isUsable(moved, account))) {
    throw new ServerFailed(
      'no-place',
      `${account?.name ?? 'this account'} can use neither ${dataDir} nor ${moved}`,
    );
  }
  await symlink(join(moved, 'data'), data);
  onLog(`${account?.name ?? 'this account'} cannot use ${dataDir}: the database lies in ${moved}`);
  return moved;
}

/** Asks the system by trying: a folder of that account and of mode 700 must be possible, and reachable for it. */
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

/** The name can be guessed and /var/tmp is everybody's: what another account put there is not used. */
async function claimFolder(folder: string): Promise<void> {
  await mkdir(folder, { mode: PASSABLE }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const stats = await lstat(folder);
  if (!stats.isDirectory() || stats.uid !== (process.getuid?.() ?? stats.uid)) {
    throw new ServerFailed(
      'no-place',
      `${folder} is needed for the database, but belongs to another account`,
    );
  }
  await chmod(folder, PASSABLE);
}

async function kindOf(path: string): Promise<'none' | 'link' | 'folder'> {
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
