import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, chmod, chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Account } from './server-account.ts';
import { serverEnvironment } from './server-environment.ts';
import { ServerFailed } from './server-failed.ts';

export const SUPERUSER = 'runhook';

/**
 * Makes the cluster on the first start, and gives the superuser's password on every one. The password lies in
 * `dataDir`/password (600). A cluster appears under its name only when it is complete, so one that was cut off by a
 * crash is made anew.
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

  const unfinished = `${folder}.unfinished`;
  const passwordForInitdb = join(base, 'initdb-password');
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  await rm(passwordForInitdb, { force: true });
  await writeFile(passwordForInitdb, `${password}\n`, { mode: 0o600 });
  if (account !== null) {
    await chown(unfinished, account.uid, account.gid);
    await chown(passwordForInitdb, account.uid, account.gid);
  }
  try {
    await runInitdb(
      join(binaries, 'bin', 'initdb'),
      [
        `--pgdata=${unfinished}`,
        `--username=${SUPERUSER}`,
        `--pwfile=${passwordForInitdb}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        // Built in, so that text sorts the same on every machine whatever locales it has.
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        ...(isDurable ? [] : ['--no-sync']),
      ],
      base,
      account,
    );
  } finally {
    await rm(passwordForInitdb, { force: true });
  }
  await rename(unfinished, folder);
  return { folder, password };
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
