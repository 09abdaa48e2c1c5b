import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  type Database,
  openDatabase,
  probeWrite,
  probeWriteOnNewConnection,
  type RecordState,
  RecordWrites,
} from '@runhook/database';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
let nowMs = 0;
let changes: RecordState[] = [];
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  nowMs = 0;
  changes = [];
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

const create = (isWithoutProbe = false) =>
  new RecordWrites({
    write: () => probeWrite(database.pool),
    ...(!isWithoutProbe && { writeOnNewConnection: () => probeWriteOnNewConnection(testDatabase.url) }),
    onChange: (state) => changes.push(state),
    nowMs: () => nowMs,
  });

/** Changes the setting for later sessions of the database, and for the open one. */
async function setReadOnly(isReadOnly: boolean): Promise<void> {
  const admin = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  const value = isReadOnly ? 'on' : 'off';
  await admin.pool.query(`SET default_transaction_read_only = off`);
  await admin.pool
    .query(
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ${value}', current_database()); END $$`,
    )
    .finally(admin.close);
  await database.pool.query(`SET default_transaction_read_only = ${value}`);
}

async function stateAfter(writes: RecordWrites, seconds: number): Promise<RecordState> {
  nowMs = seconds * 1_000;
  await writes.check();
  return writes.state;
}

test('a read-only database counts as unwritable after 30 s, and as writable after the next write', async () => {
  const writes = create();
  expect(await stateAfter(writes, 10)).toBe('writable');
  await setReadOnly(true);
  expect(await stateAfter(writes, 20)).toBe('writable');
  expect(await stateAfter(writes, 39)).toBe('writable');
  expect(await stateAfter(writes, 40)).toBe('unwritable');
  await setReadOnly(false);
  expect(await stateAfter(writes, 50)).toBe('writable');
  expect(changes).toEqual(['unwritable', 'writable']);
});

test('the state is process_fault when the connections of a process cannot write and a new one can', async () => {
  const writes = create();
  await database.pool.query('SET default_transaction_read_only = on');
  expect(await stateAfter(writes, 30)).toBe('process_fault');
  expect(await stateAfter(create(true), 60)).toBe('writable');
});

test('a successful probe does not hide that the writes of a process fail', async () => {
  const writes = create(true);
  const revoked = () => database.pool.query('INSERT INTO events SELECT FROM no_such_table');
  for (const seconds of [10, 20, 29]) {
    nowMs = seconds * 1_000;
    await expect(writes.track('events', revoked)).rejects.toThrow();
    expect(await stateAfter(writes, seconds)).toBe('writable');
  }
  nowMs = 30_000;
  await expect(writes.track('events', revoked)).rejects.toThrow();
  expect(await stateAfter(writes, 30)).toBe('unwritable');
  await writes.track('events', async () => undefined);
  expect(await stateAfter(writes, 40)).toBe('writable');
});

test('data that PostgreSQL rejects does not affect the state of the record', async () => {
  const writes = create(true);
  const rejected = () => probeWrite(database.pool).then(() => database.pool.query(`SELECT '{'::jsonb`));
  await expect(writes.track('events', rejected)).rejects.toThrow();
  expect(await stateAfter(writes, 60)).toBe('writable');
});

test('successful writes of one kind do not hide failures of another, which are dropped a minute after the last one', async () => {
  const writes = create();
  const revoked = () => database.pool.query('INSERT INTO attempts SELECT FROM no_such_table');
  for (const seconds of [10, 20, 30, 40]) {
    await writes.track('events', () => probeWrite(database.pool));
    nowMs = seconds * 1_000;
    await expect(writes.track('attempts', revoked)).rejects.toThrow();
    expect(await stateAfter(writes, seconds)).toBe(seconds < 30 ? 'writable' : 'process_fault');
  }
  expect(await stateAfter(writes, 100)).toBe('process_fault');
  expect(await stateAfter(writes, 101)).toBe('writable');
});
