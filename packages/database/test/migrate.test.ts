import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Database, MIGRATION_NAMES, openDatabase, requireSchema } from '@runhook/database';
import { migrate } from '@runhook/database/migrate';
import { createTestDatabase, eventually, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

test('migrations apply once and are recorded in the table of the Prisma CLI', async () => {
  const applied = await migrate(testDatabase.url);
  expect(applied).toEqual(MIGRATION_NAMES);
  expect(await migrate(testDatabase.url)).toEqual([]);
  const { rows } = await database.pool.query(
    'SELECT migration_name, finished_at FROM _prisma_migrations ORDER BY 1',
  );
  expect(rows).toMatchObject(
    applied.map((migration_name) => ({ migration_name, finished_at: expect.any(Date) })),
  );
});

test('a migration leaves no timer that would delay the exit of the process', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  await migrate(testDatabase.url);
  // The test runner's timers vary; the timer of a query that was not cleared would stay for 20 s or longer.
  await eventually(() => expect(timers()).toBeLessThanOrEqual(before), { timeoutMs: 10_000 });
});

test('two concurrent migrations are serialized', async () => {
  const applied = await Promise.all([migrate(testDatabase.url), migrate(testDatabase.url)]);
  expect(applied.flat()).toEqual(MIGRATION_NAMES);
});

test('the schema check accepts all migrations of the build and newer ones, and rejects a missing one', async () => {
  await expect(requireSchema(database.pool)).rejects.toMatchObject({ code: 'SCHEMA_BEHIND' });
  await migrate(testDatabase.url);
  await requireSchema(database.pool);
  await database.pool.query(
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', 'x', '2999_newer', now())`,
  );
  await requireSchema(database.pool);
  await database.pool.query('DELETE FROM _prisma_migrations WHERE migration_name = $1', [
    MIGRATION_NAMES.at(-1),
  ]);
  await expect(requireSchema(database.pool)).rejects.toMatchObject({ code: 'SCHEMA_BEHIND' });
});
