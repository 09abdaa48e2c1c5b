import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { disableJit } from '@runhook/database/migrate';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';
import pg from 'pg';

let testDatabase: TestDatabase;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
});
afterEach(() => testDatabase.drop());

/** Runs a statement on a connection without the settings of the services' pools, as a pooler opens it. */
async function query(connectionString: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const jitSourceSql = `SELECT setting, source FROM pg_settings WHERE name = 'jit'`;

test('disableJit() disables JIT for the later sessions of the role in this database and in no other', async () => {
  const otherDatabase = Object.assign(new URL(testDatabase.url), { pathname: '/postgres' }).href;
  const before = await query(otherDatabase, jitSourceSql);
  expect(await Promise.all([disableJit(testDatabase.url), disableJit(testDatabase.url)])).toEqual([
    true,
    true,
  ]);
  expect(await query(testDatabase.url, jitSourceSql)).toEqual([{ setting: 'off', source: 'database user' }]);
  expect(await query(otherDatabase, jitSourceSql)).toEqual(before);
});

test('disableJit() returns false if the database rejects the change with insufficient_privilege', async () => {
  const role = `${new URL(testDatabase.url).pathname.slice(1)}_restricted`;
  // A managed PostgreSQL may forbid ALTER ROLE; this one forbids a function that the change calls, with the same code.
  await query(testDatabase.url, 'REVOKE EXECUTE ON FUNCTION pg_advisory_xact_lock(bigint) FROM PUBLIC');
  await query(testDatabase.url, `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  try {
    const url = Object.assign(new URL(testDatabase.url), { username: role, password: 'secret' });
    expect(await disableJit(url.href)).toBe(false);
  } finally {
    await query(testDatabase.url, `DROP ROLE ${role}`);
  }
});
