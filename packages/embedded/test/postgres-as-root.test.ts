import { cp, mkdir, readdir, readlink, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Client } from 'pg';
import { startPostgres } from '../src/index.ts';
import { findInstalledBinaries } from '../src/postgres-cluster.ts';
import { ensureServerFolder } from '../src/server-folder.ts';
import { temporaryFolder } from './temporary-folder.ts';

const isRoot = process.getuid?.() === 0;
/** The tests require root, because only root can switch to another account. */
const testAsRoot = isRoot ? test : test.skip;

type Folder = Awaited<ReturnType<typeof temporaryFolder>>;
let closed: Folder;
let fallbackFolder: Folder;

beforeEach(async () => {
  closed = await temporaryFolder(0o700);
  fallbackFolder = await temporaryFolder(0o711);
});

afterEach(async () => {
  await closed.remove();
  await fallbackFolder.remove();
});

testAsRoot(
  'data and a copy of the binaries are in a folder that the account can use if only root can enter the checkout',
  async () => {
    // Removes a link, which an install without scripts does not create.
    const binaries = { ...findInstalledBinaries(), folder: join(closed.path, 'native') };
    await cp(findInstalledBinaries().folder, binaries.folder, { recursive: true, verbatimSymlinks: true });
    await rm(join(binaries.folder, 'lib', 'libpq.so.5'));
    const dataDir = join(closed.path, 'database');
    const logLines: string[] = [];
    const start = () =>
      startPostgres({
        dataDir,
        settings: { fsync: 'off' },
        onLog: (line) => logLines.push(line),
        internals: { binaries, fallbackFolder: fallbackFolder.path },
      });

    const first = await start();
    await query(first.url, 'CREATE TABLE stored AS SELECT 42 AS value');
    const { uid } = await stat(`/proc/${first.pid}`);
    await first.stop();
    expect(uid).not.toBe(0);

    const data = await readlink(join(dataDir, 'data'));
    expect(data.startsWith(fallbackFolder.path)).toBe(true);
    expect((await stat(data)).mode & 0o777).toBe(0o700);
    expect(logLines.filter((line) => line.includes(fallbackFolder.path))).toHaveLength(2);

    logLines.length = 0;
    const second = await start();
    expect(await query(second.url, 'SELECT value FROM stored')).toEqual([{ value: 42 }]);
    await second.stop();
    expect(logLines.filter((line) => line.includes('runs from a copy'))).toEqual([]);
  },
);

testAsRoot('a folder that another account created is not used', async () => {
  const account = { uid: 65_534, gid: 65_534, name: 'nobody' };
  const folder = () =>
    ensureServerFolder(join(closed.path, 'database'), account, () => undefined, fallbackFolder.path);
  const claimed = await folder();
  await rm(claimed, { recursive: true });
  await rm(join(closed.path, 'database'), { recursive: true });
  const symlinkPath = join(closed.path, 'trap');
  await mkdir(symlinkPath);
  await symlink(symlinkPath, claimed);

  await expect(folder()).rejects.toMatchObject({ code: 'no-folder' });
  expect(await readdir(symlinkPath)).toEqual([]);
});

testAsRoot('data that the account can no longer reach is not replaced by an empty database', async () => {
  const dataDir = join(closed.path, 'database');
  await mkdir(join(dataDir, 'data'), { recursive: true });
  const folder = ensureServerFolder(
    dataDir,
    { uid: 65_534, gid: 65_534, name: 'nobody' },
    () => undefined,
    fallbackFolder.path,
  );
  await expect(folder).rejects.toMatchObject({ code: 'no-folder' });
  expect(await readdir(fallbackFolder.path)).toEqual([]);
});

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
