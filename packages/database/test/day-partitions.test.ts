import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  type Database,
  deleteOldUnpartitioned,
  dropOldDayPartitions,
  ensureDayPartitions,
  openDatabase,
} from '@runhook/database';
import { createTestDatabase, PARTITION_OF_ROW, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
const readers: { release(destroy: boolean): void }[] = [];
beforeEach(async () => {
  testDatabase = await createTestDatabase({ hasDayPartitions: false });
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
});
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.release(true);
  await database.close();
  await testDatabase.drop();
});

const insertEvent = (daysFromToday: number, id: string) =>
  database.pool.query(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
     VALUES ((now() AT TIME ZONE 'UTC')::date + $1::int, $2, 1, 'job.run.started', 'x', '{}')`,
    [daysFromToday, id],
  );
const partitionOf = async (id: string) =>
  (await database.pool.query(`SELECT ${PARTITION_OF_ROW} AS place FROM events WHERE id = $1`, [id])).rows[0]
    ?.place;

/** Creates the partitions of some days in the past, each in a transaction, as the services do. */
async function createDays(...daysAgo: number[]): Promise<void> {
  for (const days of daysAgo)
    for (const table of ['events', 'deliveries', 'attempts'])
      await database.pool.query(`SELECT make_day_partition($1, (now() AT TIME ZONE 'UTC')::date - $2::int)`, [
        table,
        days,
      ]);
}

/** Opens a transaction that has read and stays open, like that of a backup or a report. */
async function holdReadLock(text: string) {
  const client = await database.pool.connect();
  readers.push(client);
  await client.query('BEGIN');
  await client.query(text);
  return { end: () => client.query('COMMIT') };
}

/** Returns the statements of this database that wait for a lock. */
const listWaiting = async () =>
  (
    await database.pool.query(
      `SELECT query FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()`,
    )
  ).rows;

/** Fails if a lock is not available immediately. */
async function writeWithoutWaiting(): Promise<void> {
  const client = await database.pool.connect();
  try {
    await client.query(`SET lock_timeout = '1ms'`);
    await client.query(
      `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
       VALUES (current_date, 'meanwhile', 1, 'x', 'x', '{}')`,
    );
    await client.query(`UPDATE events SET event_type = 'y' WHERE id = 'meanwhile'`);
    await client.query(`UPDATE deliveries SET attempt_count = 1 WHERE id = 'any'`);
    await client.query('DELETE FROM attempts WHERE delivery_id = $1', ['any']);
  } finally {
    client.release(true);
  }
}

test('rows of a day without a partition are stored, and move to the partition once it is created', async () => {
  await insertEvent(0, 'today');
  await insertEvent(-20, 'long ago');
  expect(await partitionOf('today')).toBe('events_default');
  const days = 9;
  const tables = 3;
  expect(await ensureDayPartitions(database.pool)).toEqual({ changed: days * tables, waiting: [] });
  expect(await partitionOf('today')).toBe(
    `events_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`,
  );
  expect(await partitionOf('long ago')).toBe('events_default');
});

test('a long read of one day does not delay the creation of other days', async () => {
  await createDays(2);
  const [{ day }] = (await database.pool.query(`SELECT (current_date - 2)::text AS day`)).rows;
  const reader = await holdReadLock(`SELECT * FROM deliveries WHERE day = '${day}'`);
  expect(await ensureDayPartitions(database.pool)).toEqual({ changed: 27, waiting: [] });
  await reader.end();
});

test.each(['events', 'deliveries', 'attempts'])(
  'a long reader of %s delays the partitions of that table until it ends, and no other session waits',
  async (table) => {
    await insertEvent(0, 'before');
    const reader = await holdReadLock(`SELECT count(*) FROM ${table}`);
    const pass = await ensureDayPartitions(database.pool);
    expect(pass.changed).toBe(9 * 2);
    expect(pass.waiting).toHaveLength(9);
    expect(pass.waiting.every((name) => name.startsWith(`${table}_`))).toBe(true);
    expect(await listWaiting()).toEqual([]);
    await writeWithoutWaiting();
    await reader.end();
    expect(await ensureDayPartitions(database.pool)).toEqual({ changed: 9, waiting: [] });
    expect(await partitionOf('before')).toMatch(/^events_\d{8}$/);
  },
);

test('old days of a table that a session reads are dropped once it ends, and no other session waits until then', async () => {
  await createDays(41, 40, 39);
  const reader = await holdReadLock('SELECT count(*) FROM deliveries');
  const pass = await dropOldDayPartitions(database.pool, 39);
  expect(pass.changed).toBe(2 * 2);
  expect(pass.waiting).toHaveLength(2);
  expect(await listWaiting()).toEqual([]);
  await writeWithoutWaiting();
  await reader.end();
  expect(await dropOldDayPartitions(database.pool, 39)).toEqual({ changed: 2, waiting: [] });
});

test('concurrent processes create each partition once', async () => {
  const passes = await Promise.all(Array.from({ length: 4 }, () => ensureDayPartitions(database.pool)));
  // A process leaves a partition that another one has locked for too long to the next pass.
  while (passes.at(-1)?.waiting.length !== 0) passes.push(await ensureDayPartitions(database.pool));
  expect(passes.reduce((sum, { changed }) => sum + changed, 0)).toBe(27);
  expect(await ensureDayPartitions(database.pool)).toEqual({ changed: 0, waiting: [] });
});

test('a retention of 30 days drops days of more than 30 days ago from all tables, and no other days', async () => {
  await createDays(40, 31, 30);
  await insertEvent(-31, 'old');
  await insertEvent(-30, 'kept');
  await insertEvent(-60, 'older, without a partition');
  expect(await dropOldDayPartitions(database.pool, 30)).toEqual({ changed: 2 * 3, waiting: [] });
  expect(await dropOldDayPartitions(database.pool, 30)).toEqual({ changed: 0, waiting: [] });
  await deleteOldUnpartitioned(database.pool, 30);
  const { rows } = await database.pool.query('SELECT id FROM events');
  expect(rows).toEqual([{ id: 'kept' }]);
});
