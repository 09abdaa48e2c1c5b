import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  type Database,
  deleteOldUnpartitioned,
  dropOldDayPartitions,
  ensureDayPartitions,
  openDatabase,
} from '@runhook/database';
import { createTestDatabase, PARTITION_OF_ROW, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

let testDatabase: TestDatabase;
/** The role of the dispatchers, on one connection, whose clock `moveClock` moves. */
let database: Database;
let admin: Database;

beforeEach(async () => {
  testDatabase = await createTestDatabase({ hasDayPartitions: false });
  closers.push(() => testDatabase.drop());
  const open = (url: string) => openDatabase({ url, connectionsMax: 1, connectTimeoutMs: WAIT_TIMEOUT_MS });
  admin = open(testDatabase.url);
  database = open(testDatabase.dispatcherUrl);
  closers.push(admin.close, database.close);
  await admin.pool.query(`
    SET allow_system_table_mods = on;
    ALTER FUNCTION pg_catalog.now() RENAME TO actual_now;
    CREATE FUNCTION pg_catalog.now() RETURNS timestamptz LANGUAGE sql STABLE AS
      $$ SELECT actual_now() + coalesce(current_setting('test.clock', true), '0')::interval $$`);
});

const moveClock = (days: number) => database.pool.query(`SET test.clock = '${days} days'`);
const insertEvent = (id: string, daysFromToday = 0) =>
  database.pool.query(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
     VALUES ((now() AT TIME ZONE 'UTC')::date + $1::int, $2, 1, 'job.run.started', 'x', '{}')`,
    [daysFromToday, id],
  );
const partitionOf = async (id: string) =>
  (await database.pool.query(`SELECT ${PARTITION_OF_ROW} AS place FROM events WHERE id = $1`, [id])).rows[0]
    ?.place;
const nothingChanged = { changed: 0, waiting: [] };
const TABLES = 3;
const DAYS = 9;

test('with the role of the dispatchers, each new day gets its partitions, and days are dropped after the retention', async () => {
  expect(await ensureDayPartitions(database.pool)).toEqual({ changed: DAYS * TABLES, waiting: [] });
  await insertEvent('first');
  expect(await partitionOf('first')).toMatch(/^events_\d{8}$/);

  await moveClock(1);
  expect(await ensureDayPartitions(database.pool)).toEqual({ changed: TABLES, waiting: [] });
  expect(await dropOldDayPartitions(database.pool, 30)).toEqual(nothingChanged);
  await insertEvent('second');

  // The day of the first event is the last one of the retention; only the day before it is older.
  await moveClock(30);
  expect(await dropOldDayPartitions(database.pool, 30)).toEqual({ changed: TABLES, waiting: [] });
  expect(await partitionOf('first')).toBeDefined();
  await moveClock(31);
  expect(await dropOldDayPartitions(database.pool, 30)).toEqual({ changed: TABLES, waiting: [] });
  expect(await partitionOf('first')).toBeUndefined();
  expect(await partitionOf('second')).toBeDefined();
  expect(await ensureDayPartitions(database.pool)).toEqual({ changed: DAYS * TABLES, waiting: [] });
});

test('days within the retention that migrate has stored are not dropped by dispatchers with a shorter one', async () => {
  await ensureDayPartitions(database.pool);
  await moveClock(10);
  await expect(dropOldDayPartitions(database.pool, 5)).rejects.toMatchObject({
    code: '42501',
    message: expect.stringMatching(/^\w+_\d{8} is within the retention of 30 days$/),
    hint: 'Run migrate with the LOG_RETENTION_DAYS of the dispatchers.',
  });
  await admin.pool.query('UPDATE log_retention SET days = 5');
  expect(await dropOldDayPartitions(database.pool, 5)).toMatchObject({ waiting: [] });
});

test('with the role of the dispatchers, a large default partition is converted, and old rows of the new one are deleted', async () => {
  await insertEvent('in default');
  const converted = await ensureDayPartitions(database.pool, { defaultBytesMax: 0 });
  expect(converted.waiting).toEqual([]);
  expect(await partitionOf('in default')).toMatch(/^events_\d{8}_\d{8}$/);
  await insertEvent('old', -40);
  expect(await partitionOf('old')).toBe('events_default');
  await deleteOldUnpartitioned(database.pool, 30);
  expect(await partitionOf('old')).toBeUndefined();
});
