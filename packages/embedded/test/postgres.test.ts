import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client } from 'pg';
import { type RunningPostgres, startPostgres } from '../src/index.ts';
import { isRunning, orphanServer } from './orphan-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

// All tests here share one cluster, which most of them restart.
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let dataDir: string;

beforeAll(async () => {
  folder = await temporaryFolder();
  dataDir = join(folder.path, 'database');
  const postgres = await startPostgres({ dataDir });
  await query(postgres.url, 'CREATE TABLE kept (what text)');
  await postgres.stop();
});

afterAll(() => folder.remove());

test('a second start finds the data of the first one and does not create the cluster again', async () => {
  await withPostgres(async ({ url }) => {
    await query(url, "INSERT INTO kept VALUES ('across a restart')");
  });
  const versionFile = join(dataDir, 'data', 'PG_VERSION');
  const { mtimeMs: madeAtMs } = await stat(versionFile);
  await withPostgres(async ({ url }) => {
    expect(await query(url, 'SELECT what FROM kept')).toContainEqual({ what: 'across a restart' });
  });
  expect((await stat(versionFile)).mtimeMs).toBe(madeAtMs);
});

test('the password is in a file that only its owner can read, and a wrong password is rejected', async () => {
  await withPostgres(async ({ url }) => {
    const password = (await readFile(join(dataDir, 'password'), 'utf8')).trim();
    expect(new URL(url).password).toBe(password);
    expect((await stat(join(dataDir, 'password'))).mode & 0o777).toBe(0o600);
    await expect(query(url.replace(password, 'wrong'), 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
  });
});

test('the server listens only on 127.0.0.1, and text is UTF-8 that sorts by code point', async () => {
  await withPostgres(async ({ url }) => {
    const [settings] = await query(
      url,
      `SELECT current_setting('listen_addresses') AS addresses, current_setting('unix_socket_directories') AS sockets,
              current_setting('server_encoding') AS encoding, lower('ÄB') AS lower, 'Z' < 'a' AS by_code_point`,
    );
    expect(settings).toEqual({
      addresses: '127.0.0.1',
      sockets: '',
      encoding: 'UTF8',
      lower: 'äb',
      by_code_point: true,
    });
  });
});

test('settings and the name of the database are as requested, even an unusual name', async () => {
  await withPostgres(
    async ({ url }) => {
      expect(await query(url, 'SHOW fsync')).toEqual([{ fsync: 'off' }]);
      expect(await query(url, 'SELECT current_database() AS name')).toEqual([{ name: 'odd "name" ü' }]);
    },
    { settings: { fsync: 'off' }, database: 'odd "name" ü' },
  );
});

test('a port that is in use is skipped', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as { port: number };
  await withPostgres(async (postgres) => expect(postgres.port).not.toBe(port), { port });
  holder.close();
});

test('committed data survives a kill -9', async () => {
  const postgres = await startPostgres({ dataDir });
  await query(postgres.url, "INSERT INTO kept VALUES ('across a kill')");
  await postgres.kill();
  expect(await postgres.exited).toBeNull();
  await withPostgres(async ({ url }) => {
    expect(await query(url, 'SELECT what FROM kept')).toContainEqual({ what: 'across a kill' });
  });
});

test('stop() ends open sessions instead of waiting for them', async () => {
  const postgres = await startPostgres({ dataDir });
  const client = new Client({ connectionString: postgres.url });
  const connectionClosed = new Promise((resolve) => client.on('error', resolve));
  await client.connect();
  await postgres.stop();
  expect(await postgres.exited).toBe(0);
  await connectionClosed;
});

test('a stopped server leaves no timer that would keep the process alive', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  await (await startPostgres({ dataDir })).stop();
  expect(timers()).toBe(before);
});

test('a server left by a killed parent is stopped, and its data is available', async () => {
  const orphan = await orphanServer('startPostgres', { dataDir }, async ({ url }) => {
    await query(url, "INSERT INTO kept VALUES ('by an orphan')");
  });
  expect(await isRunning(orphan)).toBe(true);
  await withPostgres(async ({ url }) => {
    expect(await isRunning(orphan)).toBe(false);
    expect(await query(url, 'SELECT what FROM kept')).toContainEqual({ what: 'by an orphan' });
  });
});

test('a folder whose server still has its parent is rejected, and that server continues', async () => {
  await withPostgres(async ({ url }) => {
    await expect(startPostgres({ dataDir })).rejects.toMatchObject({ code: 'in-use' });
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

test('a lock file with the pid of another process neither prevents the start nor harms that process', async () => {
  const { uid, gid } = await stat(join(dataDir, 'data'));
  const foreignProcess = spawn('sleep', ['3600'], process.getuid?.() === 0 ? { uid, gid } : {});
  await once(foreignProcess, 'spawn');
  await writeFile(
    join(dataDir, 'data', 'postmaster.pid'),
    `${foreignProcess.pid}\n${dataDir}/data\n1700000000\n5432\n`,
  );
  try {
    await withPostgres(async ({ url }) => {
      expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });
    expect([foreignProcess.exitCode, foreignProcess.signalCode]).toEqual([null, null]);
  } finally {
    foreignProcess.kill('SIGKILL');
  }
});

test("a failed start reports the server's log", async () => {
  const start = startPostgres({ dataDir, settings: { shared_buffers: 'plenty' } });
  await expect(start).rejects.toMatchObject({
    code: 'not-started',
    message: expect.stringContaining('invalid value for parameter "shared_buffers"'),
  });
});

test('Ctrl-C in the terminal does not reach the server, because it has a separate session', async () => {
  if (process.platform !== 'linux') return;
  await withPostgres(async ({ pid }) => {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8');
    const [, , group, session] = line.slice(line.lastIndexOf(')') + 2).split(' ');
    expect([group, session]).toEqual([String(pid), String(pid)]);
  });
});

async function withPostgres(
  use: (postgres: RunningPostgres) => Promise<void>,
  options: Partial<Parameters<typeof startPostgres>[0]> = {},
): Promise<void> {
  const postgres = await startPostgres({ dataDir, ...options });
  try {
    await use(postgres);
  } finally {
    await postgres.stop();
  }
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
