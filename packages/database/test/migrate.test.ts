import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Database, migrate, openDatabase } from '@runhook/database';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';

const MIGRATIONS = [
  '20261121000000_foundation',
  '20261121010000_console_sessions',
  '20261121020000_upkeep',
  '20261121030000_recoveries',
  '20261121040000_idempotency_keys',
];

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url });
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

test('migrations apply once, and are recorded where the Prisma CLI looks', async () => {
  const applied = await migrate(testDatabase.url);
  expect(applied).toEqual(MIGRATIONS);
  expect(await migrate(testDatabase.url)).toEqual([]);
  const { rows } = await database.pool.query('SELECT migration_name, finished_at FROM _prisma_migrations');
  expect(rows).toMatchObject(
    applied.map((migration_name) => ({ migration_name, finished_at: expect.any(Date) })),
  );
});

test('two that migrate at the same time take turns', async () => {
  const applied = await Promise.all([migrate(testDatabase.url), migrate(testDatabase.url)]);
  expect(applied.flat()).toEqual(MIGRATIONS);
});
