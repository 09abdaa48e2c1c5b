import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { createTestDatabase, TEST_ROLES, type TestDatabase } from '@runhook/testing';
import { examinePrivileges } from '../src/privileges.ts';

let testDatabase: TestDatabase;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
});
afterEach(() => testDatabase.drop());

async function examine(url: string, logRetentionDays = 30) {
  const { pool, close } = openDatabase({ url, connectionsMax: 1 });
  return await examinePrivileges(pool, logRetentionDays).finally(close);
}
async function query(text: string): Promise<void> {
  const { pool, close } = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  await pool.query(text).finally(close);
}

test('the roles of the services that migrate creates have the privileges of a service', async () => {
  for (const url of [testDatabase.managementUrl, testDatabase.dispatcherUrl])
    expect(await examine(url)).toMatchObject({ check: 'privileges', status: 'ok' });
});

test('a role that owns the tables, or is a superuser, fails with the step of the upgrade', async () => {
  expect(await examine(testDatabase.url)).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(/^of the role \S+ are those of the owner of \d+ tables/),
    remedy: expect.stringContaining('docs/upgrading.md'),
  });
});

test.each([
  ['GRANT DELETE ON _prisma_migrations', '_prisma_migrations'],
  ['GRANT UPDATE ON audit_entries', 'audit_entries'],
  ['GRANT UPDATE ON log_retention', 'log_retention'],
  ['GRANT CREATE ON SCHEMA public', 'CREATE in the schema public'],
])('a role with an additional privilege fails: %s', async (grant, named) => {
  await query(`${grant} TO ${TEST_ROLES.management.name}`);
  expect(await examine(testDatabase.managementUrl)).toMatchObject({
    status: 'failed',
    message: expect.stringContaining(named),
  });
});

test('a LOG_RETENTION_DAYS below that of migrate is reported', async () => {
  expect(await examine(testDatabase.dispatcherUrl, 29)).toMatchObject({
    status: 'warning',
    remedy: 'Run migrate with the same LOG_RETENTION_DAYS.',
  });
});
