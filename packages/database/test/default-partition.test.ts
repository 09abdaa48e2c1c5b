import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type Database,
  dropOldDayPartitions,
  ensureDayPartitions,
  findMissingDayPartitions,
  isConversionRejection,
  isDatabaseUnavailable,
  isPermanentRejection,
  openDatabase,
} from '@runhook/database';
import {
  createTestDatabase,
  eventually,
  PARTITION_OF_ROW,
  type TestDatabase,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import pg from 'pg';
import { chooseRange, convertDefaultPartition } from '../src/default-partition.ts';

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase({ hasDayPartitions: false });
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

const TODAY = `(now() AT TIME ZONE 'UTC')::date`;
const insertEvents = (daysFromToday: number, count: number) =>
  database.pool.query(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
     SELECT ${TODAY} + $1::int, $1 || '/' || n, 1, 'x', repeat('x', 900), '{}' FROM generate_series(1, $2::int) n`,
    [daysFromToday, count],
  );
const createDay = (daysFromToday: number) =>
  database.pool.query(`SELECT make_day_partition('events', ${TODAY} + $1::int)`, [daysFromToday]);
const day = (daysFromToday: number) =>
  new Date(Date.now() + daysFromToday * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '');
/** Returns the number of rows of each partition that is not empty. */
const rowsByPartition = async () => {
  const { rows } = await database.pool.query(
    `SELECT ${PARTITION_OF_ROW} AS name, count(*)::int AS rows FROM events GROUP BY 1`,
  );
  return Object.fromEntries(rows.map(({ name, rows }) => [name, rows]));
};
const GROWN = { defaultBytesMax: 1_000_000 };
/** Adds the constraint that an interrupted conversion leaves behind. */
const constrain = (first: number, last: number) =>
  database.pool.query(
    `ALTER TABLE events_default ADD CONSTRAINT events_default_${day(first)}_${day(last)}
     CHECK (day >= '${day(first)}'::date AND day < '${day(last + 1)}'::date) NOT VALID`,
  );

test('a default partition of more than 16 MB becomes a partition of its days, and partitions of the next days are created', async () => {
  await insertEvents(-3, 11_000);
  await insertEvents(0, 11_000);
  const pass = await ensureDayPartitions(database.pool);
  expect(pass).toEqual({ changed: 9 * 2 + 1 + 5, waiting: [] });
  expect(await rowsByPartition()).toEqual({ [`events_${day(-3)}_${day(2)}`]: 22_000 });
  await insertEvents(1, 1);
  await insertEvents(3, 1);
  await insertEvents(-9, 1);
  expect(await rowsByPartition()).toEqual({
    [`events_${day(-3)}_${day(2)}`]: 22_001,
    [`events_${day(3)}`]: 1,
    events_default: 1,
  });
  expect(await findMissingDayPartitions(database.pool)).toEqual([]);
  expect(await ensureDayPartitions(database.pool)).toEqual({ changed: 0, waiting: [] });
});

test('rows on the other side of an existing partition move to the new default partition', async () => {
  await createDay(-5);
  await insertEvents(-9, 3);
  await insertEvents(-5, 2);
  await insertEvents(-4, 3_000);
  expect((await ensureDayPartitions(database.pool, GROWN)).waiting).toEqual([]);
  expect(await rowsByPartition()).toEqual({
    events_default: 3,
    [`events_${day(-5)}`]: 2,
    [`events_${day(-4)}_${day(2)}`]: 3_000,
  });
});

test('a long reader delays the conversion to a later pass, and rows are visible meanwhile', async () => {
  await insertEvents(0, 3_000);
  const reader = await database.pool.connect();
  await reader.query('BEGIN; SELECT count(*) FROM events');
  const pass = await ensureDayPartitions(database.pool, GROWN);
  expect(pass.waiting).toContain('events_default');
  expect(await rowsByPartition()).toEqual({ events_default: 3_000 });
  await reader.query('COMMIT');
  reader.release();
  expect((await ensureDayPartitions(database.pool, GROWN)).waiting).toEqual([]);
  expect(await rowsByPartition()).toEqual({ [`events_${day(0)}_${day(2)}`]: 3_000 });
});

describe('an interrupted conversion', () => {
  test('is completed with the range that it had chosen', async () => {
    await insertEvents(0, 3_000);
    await constrain(-2, 3);
    await ensureDayPartitions(database.pool, GROWN);
    expect(await rowsByPartition()).toEqual({ [`events_${day(-2)}_${day(3)}`]: 3_000 });
  });

  test('is completed with another range when that one no longer contains every day', async () => {
    await insertEvents(0, 3_000);
    await constrain(-2, 1);
    await ensureDayPartitions(database.pool, GROWN);
    expect(await rowsByPartition()).toEqual({ [`events_${day(0)}_${day(2)}`]: 3_000 });
    const constraints = `SELECT conname FROM pg_constraint WHERE conname LIKE 'events_default_2%'`;
    expect((await database.pool.query(constraints)).rows).toEqual([]);
  });

  test('rejects rows of other days with an error that concerns the row only', async () => {
    await constrain(0, 2);
    const error = await insertEvents(-9, 1).catch((error: unknown) => error);
    expect([isConversionRejection(error), isPermanentRejection(error)]).toEqual([true, false]);
    expect(isDatabaseUnavailable(error)).toBe(false);
  });
});

test('a row that waits for the default partition while its day is created is rejected temporarily', async () => {
  const maker = await database.pool.connect();
  await maker.query('BEGIN; LOCK TABLE ONLY events_default IN ACCESS EXCLUSIVE MODE');
  const insert = insertEvents(0, 1).catch((error: unknown) => error);
  const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'events_default'::regclass`;
  await eventually(async () => expect((await database.pool.query(waiting)).rowCount).toBe(1));
  await maker.query(`SELECT make_day_partition('events', ${TODAY}); COMMIT`);
  maker.release();
  const error = await insert;
  expect(error).toMatchObject({ code: '23514' });
  expect([isConversionRejection(error), isPermanentRejection(error)]).toEqual([true, false]);
  await insertEvents(0, 1);
});

test('the names in an error of a worker of Citus show in any language whether a conversion of the default partition rejected the row', () => {
  const isConversion = (message: string, code = '23514') =>
    isConversionRejection(Object.assign(new pg.DatabaseError(message, 0, 'error'), { code }));
  for (const message of [
    'new row for relation "deliveries_default_102008" violates partition constraint',
    'neue Zeile für Relation »deliveries_default_102008« verletzt Partitions-Constraint',
    'new row for relation "events_default_102008" violates check constraint "events_default_20261101_20261103"',
  ])
    expect([message, isConversion(message), isConversion(message, 'XX000')]).toEqual([message, true, true]);
  for (const message of [
    'new row for relation "deliveries_20261127_102064" violates check constraint "x"',
    'new row for relation "deliveries_default_102008" violates check constraint "deliveries_status_check"',
    'neue Zeile für Relation »deliveries_default_102008« verletzt Check-Constraint »deliveries_status_check_102008«',
  ])
    expect([message, isConversion(message)]).toEqual([message, false]);
  expect(isConversion('null value in column "id" of relation "events_20261127_102048"', 'XX000')).toBe(false);
});

test('two concurrent calls convert a default partition once', async () => {
  await insertEvents(0, 3_000);
  const names = await Promise.all([
    convertDefaultPartition(database.pool, 'events'),
    convertDefaultPartition(database.pool, 'events'),
  ]);
  expect(names.filter((name) => name !== null)).toEqual([`events_${day(0)}_${day(2)}`]);
  expect(await rowsByPartition()).toEqual({ [`events_${day(0)}_${day(2)}`]: 3_000 });
});

test('a partition of several days is dropped when its last day is older than the retention', async () => {
  const name = `events_${day(-40)}_${day(-31)}`;
  await database.pool.query(
    `CREATE TABLE ${name} PARTITION OF events FOR VALUES FROM ('${day(-40)}') TO ('${day(-30)}')`,
  );
  const owner = `SELECT relowner::regrole::text AS owner FROM pg_class WHERE oid = 'events'::regclass`;
  const { rows } = await database.pool.query(owner);
  await database.pool.query(`ALTER TABLE ${name} OWNER TO ${rows[0]?.owner}`);
  expect(await dropOldDayPartitions(database.pool, 31)).toEqual({ changed: 0, waiting: [] });
  expect(await dropOldDayPartitions(database.pool, 30)).toEqual({ changed: 1, waiting: [] });
});

const rows = (...days: [string, number][]) => days.map(([day, rows]) => ({ day, rows }));
const of = (...days: string[]) => days.map((day) => ({ first: day, last: day }));

test.each([
  ['an empty table has no range', [], [], null],
  ['it ends two days ahead', rows(['2026-03-01', 1], ['2026-03-04', 1]), [], ['2026-03-01', '2026-03-07']],
  ['it ends with the latest day', rows(['2026-03-09', 1]), [], ['2026-03-09', '2026-03-09']],
  [
    'it ends before the next partition',
    rows(['2026-03-04', 1]),
    of('2026-03-06'),
    ['2026-03-04', '2026-03-05'],
  ],
  [
    'it is the side of a partition with the most rows',
    rows(['2026-02-01', 5], ['2026-02-03', 5], ['2026-03-04', 9]),
    of('2026-02-09'),
    ['2026-02-01', '2026-02-08'],
  ],
] as const)('the days of a converted default partition as a range: %s', (_, days, partitions, range) => {
  const found = chooseRange({ today: '2026-03-05', days, partitions });
  expect(found && [found.first, found.last]).toEqual(range);
});
