import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { column, type Database, openDatabase, queryRows, UnexpectedRowError } from '@runhook/database';
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

const COLUMNS = {
  id: column.digits,
  name: column.orNull(column.text),
  kind: column.oneOf(['a', 'b'] as const),
  count: column.integer,
  share: column.float,
  is_new: column.flag,
  tags: column.texts,
  data: column.object,
  headers: column.textsByName,
};

const GOOD = {
  id: '12::bigint',
  name: 'NULL::text',
  kind: `'a'::text`,
  count: '3',
  share: '0.5::float8',
  is_new: 'true',
  tags: `'{x,y}'::text[]`,
  data: `'{"a":[1]}'::json`,
  headers: `'{"a":"b"}'::json`,
};

const select = (columns: Record<string, string>) =>
  queryRows(
    database.pool,
    COLUMNS,
    `SELECT ${Object.entries(columns)
      .map(([name, sql]) => `${sql} AS ${name}`)
      .join(', ')}`,
    [],
  );

test('rows with the required columns are returned unchanged', async () => {
  expect(await select({ ...GOOD, more: '1' })).toEqual([
    {
      id: '12',
      name: null,
      kind: 'a',
      count: 3,
      share: 0.5,
      is_new: true,
      tags: ['x', 'y'],
      data: { a: [1] },
      headers: { a: 'b' },
      more: 1,
    },
  ]);
});

test.each([
  ['id', `'twelve'`],
  ['id', '12'],
  ['name', '7'],
  ['kind', `'c'`],
  ['kind', 'NULL'],
  ['count', '3::bigint'],
  ['share', `'x'`],
  ['is_new', `'true'::text`],
  ['tags', `'{1,2}'::int[]`],
  ['data', `'[1]'::json`],
  ['headers', `'{"a":1}'::json`],
])('a row whose %s is %s is rejected with the name of the column', async (name, sql) => {
  const rejected = select({ ...GOOD, [name]: sql });
  await expect(rejected).rejects.toThrow(UnexpectedRowError);
  await expect(rejected).rejects.toThrow(`"${name}"`);
});

test('a row that lacks a column is rejected', async () => {
  const { tags: _, ...rest } = GOOD;
  await expect(select(rest)).rejects.toThrow('"tags"');
});
