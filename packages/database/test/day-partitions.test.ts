import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Database, dropOldDayPartitions, ensureDayPartitions, openDatabase } from '@runhook/database';
import { createTestDatabase, IN_VAIN_MS, type TestDatabase } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: IN_VAIN_MS });
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

const insertEvent = (daysFromToday: number, id: string) =>
  database.pool.query(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
     VALUES ((now() AT TIME ZONE 'UTC')::date + $1::int, $2, 1, 'job.run.started', 'x', '{}')`,
    [daysFromToday, id],
  );
const placeOf = async (id: string) =>
  (await database.pool.query(`SELECT tableoid::regclass::text AS place FROM events WHERE id = $1`, [id]))
    .rows[0]?.place;

test('a day without a partition still takes rows, and they move into it once it is made', async () => {
  await insertEvent(0, 'today');
  await insertEvent(-20, 'long ago');
  expect(await placeOf('today')).toBe('events_default');
  const days = 9;
  const tables = 3;
  expect(await ensureDayPartitions(database.pool)).toBe(days * tables);
  expect(await placeOf('today')).toBe(`events_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`);
  expect(await placeOf('long ago')).toBe('events_default');
});

test('partitions are made once, however many processes ask', async () => {
  const made = await Promise.all(Array.from({ length: 4 }, () => ensureDayPartitions(database.pool)));
  expect(made.sort((a, b) => a - b)).toEqual([0, 0, 0, 27]);
});

test('of forty past days retention drops the ten before the last thirty, in all tables, and keeps the rest', async () => {
  await database.pool.query(
    `SELECT ensure_day_partitions((now() AT TIME ZONE 'UTC')::date - 40, (now() AT TIME ZONE 'UTC')::date)`,
  );
  await insertEvent(-31, 'old');
  await insertEvent(-30, 'kept');
  await insertEvent(-60, 'older, without a partition');
  expect(await dropOldDayPartitions(database.pool, 30)).toBe(10 * 3);
  expect(await dropOldDayPartitions(database.pool, 30)).toBe(0);
  const { rows } = await database.pool.query('SELECT id FROM events');
  expect(rows).toEqual([{ id: 'kept' }]);
});
