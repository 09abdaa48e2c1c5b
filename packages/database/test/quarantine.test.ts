import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  addQuarantined,
  type Database,
  isItemFault,
  listQuarantined,
  openDatabase,
  rejectionReason,
  releaseQuarantined,
  runStatement,
  withoutQuarantined,
} from '@runhook/database';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url });
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

const errorOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error);
const runQuery = (text: string, values: unknown[] = []) => errorOf(runStatement(database.pool, text, values));

test('an error of the data is an item fault, and an error of the store is not', async () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  for (const error of [
    await runQuery('SELECT $1::text', ['\u0000']),
    await runQuery('SELECT $1::jsonb', ['"\\ud83d"']),
    // 54000: a value that exceeds the maximum size of a field.
    await runQuery("SELECT repeat('x', 1100000000)"),
    await runQuery('INSERT INTO reconciler_cursors VALUES ($1, now(), $1)', ['no source']),
    await runQuery('SELECT $1::jsonb', [circular]),
  ])
    expect(isItemFault(error)).toBe(true);
  for (const error of [
    await runQuery('SELECT FROM no_such_table'),
    await runQuery('SET TRANSACTION READ ONLY; DELETE FROM notices'),
    await runQuery('SET LOCAL statement_timeout = 1; SELECT pg_sleep(9)'),
  ])
    expect(isItemFault(error)).toBe(false);
});

test('an item that is set aside is returned with its reason and message, whatever they contain', async () => {
  const message = { text: 'cut \ud83d and \u0000', number: 1 };
  const reason = rejectionReason(new Error(`\u0000 \ud83d ${'x'.repeat(10_000)}`));
  const items = [
    { accountId: 1, kind: 'event', key: 'wev_1', reason, message },
    { accountId: 2, kind: 'delivery', key: 'wdl_1', reason: 'other' },
  ] as const;
  expect(await addQuarantined(database.pool, items)).toEqual(['event', 'delivery']);
  // A second rejection of the same item is counted once.
  expect(await addQuarantined(database.pool, items)).toEqual([]);
  expect(await listQuarantined(database.pool, { accountId: 1, limit: 10 })).toMatchObject([items[0]]);
  expect(await listQuarantined(database.pool, { keys: ['wdl_1'], limit: 10 })).toMatchObject([items[1]]);
});

test('a reason has at most 500 code points, and its invalid characters are replaced', () => {
  const reason = rejectionReason(new Error(`\u0000\ud83d\ufdd0${'🚀'.repeat(600)}`));
  expect(reason).toBe(`\ufffd\ufffd\ufffd${'🚀'.repeat(497)}`);
});

test('withoutQuarantined() omits an item until it is released, and only in its own account', async () => {
  await addQuarantined(database.pool, [{ accountId: 1, kind: 'event', key: 'wev_1', reason: 'r' }]);
  const items = [
    { accountId: 1, key: 'wev_1' },
    { accountId: 2, key: 'wev_1' },
  ];
  const left = () => withoutQuarantined(database.pool, 'event', items, (item) => item);
  expect(await left()).toEqual([items[1]]);
  await releaseQuarantined(database.pool, { accountId: 1, kind: 'event', key: 'wev_1' });
  expect(await left()).toEqual(items);
});
