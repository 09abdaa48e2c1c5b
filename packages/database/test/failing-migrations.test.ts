import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Database, openDatabase } from '@runhook/database';
import { migrate, readMigrationStates } from '@runhook/database/migrate';
import { createTestDatabase, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
let directory: string;
let reader: { release(destroy: boolean): void } | undefined;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  directory = await mkdtemp(join(tmpdir(), 'runhook-migrations-'));
  await writeFile(join(directory, 'migration_lock.toml'), 'provider = "postgresql"\n');
  await write('0_things', 'CREATE TABLE things (id int);');
  await migrate(testDatabase.url, { directory });
});
afterEach(async () => {
  reader?.release(true);
  reader = undefined;
  await rm(directory, { recursive: true, force: true });
  await database.close();
  await testDatabase.drop();
});

async function write(name: string, script: string): Promise<void> {
  await mkdir(join(directory, name), { recursive: true });
  await writeFile(join(directory, name, 'migration.sql'), script);
}

/** Opens a transaction that has read and stays open. Returns a function that ends it. */
async function holdReadLock(): Promise<() => Promise<unknown>> {
  const client = await database.pool.connect();
  reader = client;
  await client.query('BEGIN; SELECT * FROM things');
  return () => client.query('COMMIT');
}

const columnsOf = async (table: string) =>
  (
    await database.pool.query(`SELECT column_name FROM information_schema.columns WHERE table_name = $1`, [
      table,
    ])
  ).rows.map(({ column_name }) => column_name);

test('a failing migration reports the message of the database, leaves no changes, and can be fixed and run again', async () => {
  await write('2_second', 'CREATE TABLE more (id int);\n\nALTER TABLE things ADD COLUMN id text;');
  const message = 'column "id" of relation "things" already exists (42701)';
  await expect(migrate(testDatabase.url, { directory })).rejects.toMatchObject({
    code: 'migration_failed',
    message: `The migration 2_second failed. ${message}`,
  });
  expect(await columnsOf('more')).toEqual([]);
  expect(await readMigrationStates(testDatabase.url, directory)).toMatchObject([
    { name: '0_things', state: 'applied', errorText: null },
    { name: '2_second', state: 'missing', errorText: message },
  ]);
  await write('2_second', 'CREATE TABLE more (id int);');
  expect(await migrate(testDatabase.url, { directory })).toEqual(['2_second']);
  expect(await readMigrationStates(testDatabase.url, directory)).toMatchObject([
    { state: 'applied' },
    { state: 'applied', errorText: null },
  ]);
});

test('migrations and the log of a failed one are written with JIT off', async () => {
  await database.pool.query(`
    CREATE TABLE settings (jit text DEFAULT current_setting('jit'));
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO settings DEFAULT VALUES; RETURN NULL; END';
    CREATE TRIGGER noted AFTER UPDATE OF logs ON _prisma_migrations EXECUTE FUNCTION note()`);
  await write('1_setting', 'INSERT INTO settings DEFAULT VALUES;');
  await write('2_failing', 'SELECT 1 / 0;');
  await expect(migrate(testDatabase.url, { directory })).rejects.toThrow('The migration 2_failing failed');
  expect((await database.pool.query('SELECT DISTINCT jit FROM settings')).rows).toEqual([{ jit: 'off' }]);
  expect((await database.pool.query('SELECT FROM settings')).rowCount).toBeGreaterThan(1);
});

test('a syntax error in a migration is reported with its line', async () => {
  await write('1_first', 'CREATE TABLE more (id int);\n\nALTER TABEL things ADD COLUMN name text;');
  await expect(migrate(testDatabase.url, { directory })).rejects.toMatchObject({
    message: 'The migration 1_first failed. syntax error at or near "TABEL" (42601, line 3)',
  });
});

test('a migration that waits for a long reader lets other sessions proceed, and applies once the reader ends', async () => {
  const releaseLock = await holdReadLock();
  await write('1_first', 'ALTER TABLE things ADD COLUMN name text;');
  let waits = 0;
  const onLockWait = async () => {
    waits += 1;
    // Shows that no other session waits for the migration.
    await database.pool.query(`BEGIN; SET LOCAL lock_timeout = '1ms'; INSERT INTO things VALUES (1); COMMIT`);
    if (waits === 2) await releaseLock();
  };
  expect(await migrate(testDatabase.url, { directory, lockTimeoutMs: 50, onLockWait })).toEqual(['1_first']);
  expect(waits).toBe(2);
  expect(await columnsOf('things')).toEqual(['id', 'name']);
});

test('a migration that never gets its lock fails, and the next run applies it', async () => {
  const releaseLock = await holdReadLock();
  await write('1_first', 'ALTER TABLE things ADD COLUMN name text;');
  const shortWaits = { directory, lockTimeoutMs: 20, lockTries: 2 };
  await expect(migrate(testDatabase.url, shortWaits)).rejects.toMatchObject({
    message: 'The migration 1_first failed. canceling statement due to lock timeout (55P03)',
  });
  await releaseLock();
  expect(await migrate(testDatabase.url, shortWaits)).toEqual(['1_first']);
});

const STATEMENT_BY_STATEMENT = `-- One by one, outside a transaction.
-- Some reason; with a semicolon.
DROP INDEX CONCURRENTLY IF EXISTS things_id_idx;
CREATE UNIQUE INDEX CONCURRENTLY things_id_idx
  ON things (id);
`;

test('a migration can create an index concurrently', async () => {
  await write('2_index', STATEMENT_BY_STATEMENT);
  expect(await migrate(testDatabase.url, { directory })).toEqual(['2_index']);
  const { rows } = await database.pool.query(
    `SELECT indisvalid FROM pg_index WHERE indexrelid = 'things_id_idx'::regclass`,
  );
  expect(rows).toEqual([{ indisvalid: true }]);
});

test('a migration that is interrupted outside a transaction must be resolved by an operator', async () => {
  await database.pool.query('INSERT INTO things VALUES (1), (1)');
  await write('1_index', STATEMENT_BY_STATEMENT);
  await expect(migrate(testDatabase.url, { directory })).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringContaining('Detail: Key (id)=(1) is duplicated.'),
  });
  await expect(migrate(testDatabase.url, { directory })).rejects.toMatchObject({
    code: 'migration_unresolved',
    message: expect.stringContaining('migrate resolve --rolled-back'),
  });
  expect(await readMigrationStates(testDatabase.url, directory)).toMatchObject([
    { state: 'applied' },
    { state: 'unresolved', errorText: expect.stringContaining('could not create unique index') },
  ]);
});
