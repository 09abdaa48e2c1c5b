import { cp, mkdir, readdir, readlink, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Client } from 'pg';
import { startPostgres } from '../src/index.ts';
import { installedBinaries } from '../src/postgres-cluster.ts';
import { serverFolder } from '../src/server-folder.ts';
import { temporaryFolder } from './temporary-folder.ts';

const isRoot = process.getuid?.() === 0;
/** The tests require root, because only root can switch to another account. */
const testAsRoot = isRoot ? test : test.skip;

type Folder = Awaited<ReturnType<typeof temporaryFolder>>;
let closed: Folder;
let elsewhere: Folder;

beforeEach(async () => {
  closed = await temporaryFolder(0o700);
  elsewhere = await temporaryFolder(0o711);
});

afterEach(async () => {
  await closed.remove();
  await elsewhere.remove();
});

testAsRoot(
  'data and binaries are moved to a folder that the account can use if only root can enter the checkout',
  async () => {
    // Removes a link, as an install without scripts does.
    const binaries = { ...installedBinaries(), folder: join(closed.path, 'native') };
    await cp(installedBinaries().folder, binaries.folder, { recursive: true, verbatimSymlinks: true });
    await rm(join(binaries.folder, 'lib', 'libpq.so.5'));
    const dataDir = join(closed.path, 'database');
    const said: string[] = [];
    const start = () =>
      startPostgres({
        dataDir,
        settings: { fsync: 'off' },
        onLog: (line) => said.push(line),
        internals: { binaries, elsewhere: elsewhere.path },
      });

    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    const { uid } = await stat(`/proc/${first.pid}`);
    await first.stop();
    expect(uid).not.toBe(0);

    const data = await readlink(join(dataDir, 'data'));
    expect(data.startsWith(elsewhere.path)).toBe(true);
    expect((await stat(data)).mode & 0o777).toBe(0o700);
    expect(said.filter((line) => line.includes(elsewhere.path))).toHaveLength(2);

    said.length = 0;
    const second = await start();
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    await second.stop();
    expect(said.filter((line) => line.includes('runs from a copy'))).toEqual([]);
  },
);

testAsRoot('a folder that another account created is not used', async () => {
  const account = { uid: 65_534, gid: 65_534, name: 'nobody' };
  const folder = () => serverFolder(join(closed.path, 'database'), account, () => undefined, elsewhere.path);
  const claimed = await folder();
  await rm(claimed, { recursive: true });
  await rm(join(closed.path, 'database'), { recursive: true });
  const trap = join(closed.path, 'trap');
  await mkdir(trap);
  await symlink(trap, claimed);

  await expect(folder()).rejects.toMatchObject({ code: 'no-folder' });
  expect(await readdir(trap)).toEqual([]);
});

testAsRoot('data that the account can no longer reach is not replaced by an empty database', async () => {
  const dataDir = join(closed.path, 'database');
  await mkdir(join(dataDir, 'data'), { recursive: true });
  const folder = serverFolder(
    dataDir,
    { uid: 65_534, gid: 65_534, name: 'nobody' },
    () => undefined,
    elsewhere.path,
  );
  await expect(folder).rejects.toMatchObject({ code: 'no-folder' });
  expect(await readdir(elsewhere.path)).toEqual([]);
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
