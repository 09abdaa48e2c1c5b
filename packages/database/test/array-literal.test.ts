import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Database, openDatabase, runStatement } from '@runhook/database';
import { createTestDatabase, IN_VAIN_MS, type TestDatabase } from '@runhook/testing';
import fc from 'fast-check';
import { arrayLiteral } from '../src/statements.ts';

let testDatabase: TestDatabase;
let database: Database;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, connectionsMax: 1, connectTimeoutMs: IN_VAIN_MS });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

async function stored(type: string, items: unknown[]): Promise<unknown> {
  const [row] = await runStatement<{ items: unknown }>(database.pool, `SELECT $1::${type}[] AS items`, [
    items,
  ]);
  return row?.items;
}

test('PostgreSQL reads every text as it was', async () => {
  const special = [
    '',
    'NULL',
    'null',
    '"',
    '\\',
    '\\"',
    '{}',
    ',',
    ' ',
    '\n\t\r\u0001',
    'a\\nb',
    '\u2028',
    'é😀',
    null,
  ];
  expect(await stored('text', special)).toEqual(special);
  // PostgreSQL has no text with a NUL in it, and UTF-8 no half of a pair.
  const text = fc.string({ unit: 'grapheme' }).map((value) => value.replaceAll('\0', ''));
  const printable = fc.string().map((value) => value.replaceAll('\0', ''));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(text, printable, fc.constant(null))), async (items) => {
      expect(await stored('text', items)).toEqual(items);
    }),
  );
});

test('and numbers, booleans and JSON', async () => {
  expect(await stored('int', [1, -2, null])).toEqual([1, -2, null]);
  expect(await stored('bigint', [9_007_199_254_740_991n, 1])).toEqual(['9007199254740991', '1']);
  expect(await stored('boolean', [true, false, undefined])).toEqual([true, false, null]);
  const json = { 'content-type': 'a "b" \\ \n' };
  expect(await stored('json', [JSON.stringify(json)])).toEqual([json]);
  expect(await stored('text', [])).toEqual([]);
});

test('leaves the rest to the driver', async () => {
  expect(arrayLiteral([new Date(0)])).toBeNull();
  expect(await stored('timestamptz', [new Date(0)])).toEqual([new Date(0)]);
  expect(await stored('int', [[1, 2]])).toEqual([[1, 2]]);
});
