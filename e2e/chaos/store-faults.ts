import { spawnSync } from 'node:child_process';
import { chown, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ensureDayPartitions, type Pool } from '@runhook/database';
import { eventually } from '@runhook/testing';
import type { Fault } from './faults.ts';
import { isLong, type World } from './world.ts';

const READ_ONLY_MS = isLong ? 12_000 : 2_000;
const LONG_READ_MS = 6_000;
const DISK_BYTES = 32 * 1_024 * 1_024;

/** Faults in which a store is reachable and fails to execute commands. */
export const STORE_FAULTS: Fault[] = [
  {
    name: 'a table is locked',
    drainedWithinSeconds: 120,
    strike: ({ database }) =>
      inSession(database.pool, async (run) => {
        await run('BEGIN; LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE');
        await wait(READ_ONLY_MS);
        await run('COMMIT');
      }),
  },
  {
    name: 'columns are missing',
    drainedWithinSeconds: 120,
    async strike({ database }) {
      await withShortLock(database.pool, [
        'ALTER TABLE events RENAME data TO no_data',
        'ALTER TABLE attempts RENAME error_code TO no_error_code',
      ]);
      await wait(READ_ONLY_MS);
      await withShortLock(database.pool, [
        'ALTER TABLE events RENAME no_data TO data',
        'ALTER TABLE attempts RENAME no_error_code TO error_code',
      ]);
    },
  },
  {
    name: 'PostgreSQL rejects writes',
    drainedWithinSeconds: 120,
    strike: ({ database }) =>
      inSession(database.pool, async (run) => {
        await run('SET default_transaction_read_only = off');
        await run('ALTER SYSTEM SET default_transaction_read_only = on');
        await run('SELECT pg_reload_conf()');
        await wait(READ_ONLY_MS);
        await run('ALTER SYSTEM RESET default_transaction_read_only');
        await run('SELECT pg_reload_conf()');
      }),
  },
  {
    name: 'the disk of the log is full',
    drainedWithinSeconds: 120,
    skipReason: () => (process.getuid?.() === 0 ? null : 'only root can mount a small disk'),
    async strike(world) {
      await withSmallDisk(world, async (filler) => {
        await writeFile(filler, Buffer.alloc(DISK_BYTES)).catch(expectDiskFull);
        await wait(READ_ONLY_MS);
        await rm(filler);
      });
    },
  },
  {
    name: 'Redis is full',
    only: 'Redis',
    drainedWithinSeconds: 120,
    async strike({ servers }) {
      const used = /used_memory:(\d+)/.exec(await servers.redis('INFO memory'))?.[1];
      await servers.redis(`CONFIG SET maxmemory ${used}`);
      await wait(READ_ONLY_MS);
      await servers.redis('CONFIG SET maxmemory 0');
    },
  },
  {
    name: 'a long read of the log blocks a new partition',
    stallSecondsMax: 3,
    async strike({ database: { pool } }) {
      await withShortLock(pool, [
        `DO $$ BEGIN
           EXECUTE 'DROP TABLE IF EXISTS deliveries_' || to_char(now() AT TIME ZONE 'UTC' + interval '7 days', 'YYYYMMDD');
         END $$`,
      ]);
      await inSession(pool, async (run) => {
        await run('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM deliveries');
        const { waiting } = await ensureDayPartitions(pool);
        if (waiting.length === 0) throw new Error('the new partition did not wait for the reader');
        await wait(LONG_READ_MS);
        await run('COMMIT');
      });
      // Each call gives up on a lock that is not free immediately, and on a busy machine another session may lock the table, too.
      await eventually(async () => {
        const { waiting } = await ensureDayPartitions(pool);
        if (waiting.length > 0) throw new Error('the new partition was not created');
      });
    },
  },
];

/**
 * Runs statements on one connection and closes it afterwards, because they may leave state on it. Retries to connect, because on a
 * busy machine that may exceed the timeout of the pool.
 */
async function inSession(pool: Pool, work: (run: (sql: string) => Promise<unknown>) => Promise<unknown>) {
  const client = await eventually(() => pool.connect());
  try {
    await work((sql) => client.query(sql));
  } finally {
    client.release(true);
  }
}

/** Runs statements in one transaction with a short lock timeout, and retries it, so that other sessions are not blocked for long. */
async function withShortLock(pool: Pool, statements: readonly string[]): Promise<void> {
  const transaction = ['BEGIN', `SET LOCAL lock_timeout = '1s'`, ...statements, 'COMMIT'].join('; ');
  await eventually(() => inSession(pool, (run) => run(transaction)));
}

const TODAY = ['events', 'deliveries', 'attempts'].map(
  (table) => `'${table}_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')`,
);
const moveTo = (tablespace: string) =>
  `BEGIN; SET LOCAL lock_timeout = '5s'; DO $$
   BEGIN ${TODAY.map((table) => `EXECUTE 'ALTER TABLE ' || ${table} || ' SET TABLESPACE ${tablespace}';`).join(' ')} END $$;
   COMMIT`;

/** Runs `work` while the current partitions of the log are on a separate disk of some megabytes. */
async function withSmallDisk(
  { database: { pool }, servers }: World,
  work: (filler: string) => Promise<void>,
): Promise<void> {
  const disk = join(servers.folder, 'disk');
  await mkdir(disk, { recursive: true });
  runOrThrow('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', disk]);
  try {
    const { rows } = await pool.query<{ folder: string }>(
      `SELECT current_setting('data_directory') AS folder`,
    );
    const { uid, gid } = await stat(rows[0]?.folder ?? '');
    const space = join(disk, 'tablespace');
    await mkdir(space);
    await chown(space, uid, gid);
    await inSession(pool, (run) => run(`CREATE TABLESPACE small_disk LOCATION '${space}'`));
    await eventually(() => inSession(pool, (run) => run(moveTo('small_disk'))));
    await work(join(disk, 'filler'));
    await eventually(() => inSession(pool, (run) => run(moveTo('pg_default'))));
    await inSession(pool, (run) => run('DROP TABLESPACE small_disk'));
  } finally {
    runOrThrow('umount', ['--lazy', disk]);
  }
}

function expectDiskFull(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOSPC') throw error;
}

function runOrThrow(file: string, args: string[]): void {
  const { status, stderr, error } = spawnSync(file, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${error?.message ?? stderr}`);
}
