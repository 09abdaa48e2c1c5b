import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { TABLE_PRIVILEGES, urlAsOwner } from '@runhook/database/migrate';
import { createTestDatabase, TEST_ROLES, type TestDatabase } from '@runhook/testing';
import pg from 'pg';

let testDatabase: TestDatabase;
const clients: Partial<Record<'owner' | 'management' | 'dispatcher', pg.Client>> = {};

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  const { url, managementUrl, dispatcherUrl } = testDatabase;
  // The session of a superuser who works as the owner could leave the role.
  for (const [role, roleUrl] of Object.entries({
    owner: url,
    management: managementUrl,
    dispatcher: dispatcherUrl,
  })) {
    const client = new pg.Client({ connectionString: roleUrl });
    await client.connect();
    clients[role as keyof typeof clients] = client;
  }
  await clients.owner?.query(`SET SESSION AUTHORIZATION ${TEST_ROLES.owner}`);
});
afterAll(async () => {
  for (const client of Object.values(clients)) await client.end();
  await testDatabase.drop();
});

const TODAY = `(now() AT TIME ZONE 'UTC')::date`;
const SUPERUSER = [
  'CREATE ROLE intruder SUPERUSER',
  'ALTER SYSTEM SET fsync = off',
  'CREATE DATABASE elsewhere',
  `COPY (SELECT 1) TO PROGRAM 'true'`,
  `SELECT pg_read_file('PG_VERSION')`,
  'SELECT rolpassword FROM pg_authid',
  'CREATE FUNCTION escape() RETURNS void LANGUAGE c AS $$x$$',
  `ALTER FUNCTION pg_catalog.now() RENAME TO never`,
];
const AS_OWNER = [
  'DROP TABLE events',
  'DROP TRIGGER audit_entries_append_only ON audit_entries',
  'ALTER TABLE audit_entries DISABLE TRIGGER ALL',
  'ALTER TABLE subscriptions ADD COLUMN spy text',
  'ALTER TABLE events DETACH PARTITION events_default',
  'CREATE TABLE hoard (bytes text)',
  'CREATE TABLE bullmq.hoard (bytes text)',
  'CREATE SCHEMA hoard',
  'CREATE FUNCTION spy() RETURNS void LANGUAGE sql AS $$SELECT 1$$',
  'CREATE OR REPLACE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN OLD; END$$',
  'ALTER FUNCTION make_day_partition(text, date) RESET search_path',
  'CREATE TRIGGER spy AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION advance_cache_version()',
  'CREATE INDEX spy ON runs (job_id)',
  `SET ROLE ${TEST_ROLES.owner}`,
  `SET session_replication_role = replica`,
  ...Object.keys(TABLE_PRIVILEGES)
    .filter((table) => table !== 'logged_attempts')
    .map((table) => `TRUNCATE ${table}`),
];
const FOR_BOTH_SERVICES = [
  ...SUPERUSER,
  ...AS_OWNER,
  'DELETE FROM _prisma_migrations',
  'UPDATE _prisma_migrations SET finished_at = NULL',
  `UPDATE audit_entries SET action = 'x'`,
  'UPDATE log_retention SET days = 1',
  'DELETE FROM log_retention',
  'DELETE FROM accounts',
  'DELETE FROM service_tokens',
  'DELETE FROM events',
  'DELETE FROM deliveries',
  `UPDATE deliveries SET day = '1970-01-01'`,
  'DELETE FROM attempts',
  'UPDATE attempts SET http_status_code = 200',
  `UPDATE events SET data = '{}'`,
  'SELECT * FROM events_20260101',
  `SELECT ensure_day_partitions(${TODAY}, ${TODAY})`,
  `SELECT drop_day_partitions(${TODAY})`,
  'DELETE FROM bullmq.migration',
  'DROP TABLE bullmq.job',
  'TRUNCATE bullmq.job',
];

const REJECTED = {
  owner: SUPERUSER,
  management: [
    ...FOR_BOTH_SERVICES,
    'DELETE FROM audit_entries',
    'DELETE FROM subscriptions',
    'DELETE FROM runs',
    'DELETE FROM jobs',
    'DELETE FROM incidents',
    'DELETE FROM deliveries_default',
    'SELECT * FROM events_default',
    'SELECT * FROM notices',
    'SELECT * FROM reconciler_cursors',
    `INSERT INTO notices (kind) VALUES ('failing')`,
    `INSERT INTO deliveries (id) VALUES ('x')`,
    `SELECT make_day_partition('events', ${TODAY})`,
    `SELECT drop_day_partition('events', ${TODAY} - 100)`,
    `SELECT constrain_default_partition('events', ${TODAY}, ${TODAY})`,
    `SELECT validate_default_partition('events')`,
    `SELECT swap_default_partition('events')`,
  ],
  dispatcher: [
    ...FOR_BOTH_SERVICES,
    'SELECT password_hash FROM users',
    'SELECT api_key_ciphertext FROM users',
    'SELECT token_hash FROM service_tokens',
    'SELECT * FROM console_sessions',
    'SELECT response_ciphertext FROM idempotency_keys',
    'SELECT * FROM rate_limits',
    `UPDATE users SET name = 'x'`,
    `UPDATE accounts SET plan = 'enterprise'`,
    `UPDATE memberships SET permission_sets = '{account_admin}'`,
    'INSERT INTO memberships DEFAULT VALUES',
    'INSERT INTO subscriptions DEFAULT VALUES',
    `UPDATE subscriptions SET client_url = 'https://elsewhere.example'`,
    `UPDATE subscriptions SET headers_ciphertext = NULL`,
    'DELETE FROM memberships',
    'UPDATE jobs SET name = $$x$$',
    // Owner's functions accept day partitions only, and days outside the retention to be dropped.
    `SELECT make_day_partition('users', ${TODAY})`,
    `SELECT make_day_partition('events', ${TODAY} + 30)`,
    `SELECT make_day_partition('events', 'infinity')`,
    `SELECT make_day_partition(NULL, ${TODAY})`,
    `SELECT drop_day_partition('users', ${TODAY})`,
    `SELECT drop_day_partition('events', ${TODAY})`,
    `SELECT drop_day_partition('events', ${TODAY} - 1)`,
    `SELECT constrain_default_partition('users', ${TODAY}, ${TODAY})`,
    `SELECT constrain_default_partition('events', ${TODAY}, ${TODAY} - 1)`,
    `SELECT validate_default_partition('events; DROP TABLE users')`,
    `SELECT swap_default_partition('accounts')`,
  ],
} as const;

describe.each(['owner', 'management', 'dispatcher'] as const)('the role of the %s', (role) => {
  test.each(REJECTED[role])('is rejected: %s', async (statement) => {
    const client = clients[role] as pg.Client;
    // Stands for the partition of today.
    const [{ name }] = (await client.query(`SELECT 'events_' || to_char(${TODAY}, 'YYYYMMDD') AS name`)).rows;
    await expect(client.query(statement.replace('events_20260101', name))).rejects.toMatchObject({
      code: expect.stringMatching(/^(42501|22023)$/),
    });
  });
});

test('each table of the schema has an entry in the list of privileges', async () => {
  const { rows } = await (clients.owner as pg.Client).query<{ name: string }>(
    `SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')
       AND relname !~ '_[0-9]{8}$' ORDER BY 1`,
  );
  expect(Object.keys(TABLE_PRIVILEGES).sort()).toEqual(rows.map(({ name }) => name).sort());
});

test('only functions of the owner with a fixed search path have the rights of the owner, and PUBLIC may execute none', async () => {
  const { rows } = await (clients.owner as pg.Client).query(
    `SELECT proname::text AS name, proconfig::text[] AS settings, has_function_privilege('public', oid, 'EXECUTE') AS "isPublic"
     FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY 1`,
  );
  expect(rows.map(({ name }) => name)).toEqual([
    'constrain_default_partition',
    'drop_day_partition',
    'make_day_partition',
    'swap_default_partition',
    'validate_default_partition',
  ]);
  for (const { settings, isPublic } of rows) {
    expect(settings).toContain('search_path=public, pg_temp');
    expect(isPublic).toBe(false);
  }
});

test('the URL of the owner keeps the options of the given URL', () => {
  expect(urlAsOwner('postgres://a:b@db/x?options=-c%20jit%3Doff', 'someone')).toBe(
    'postgres://a:b@db/x?options=-c+jit%3Doff+-c+role%3Dsomeone',
  );
});

test('a temporary table of a service diverts no entry of the audit log', async () => {
  const { management } = clients;
  const count = async () => {
    const sql = 'SELECT count(*)::int AS entries FROM public.audit_entries';
    return (await management?.query<{ entries: number }>(sql))?.rows[0]?.entries ?? Number.NaN;
  };
  const before = await count();
  await management?.query('CREATE TEMP TABLE audit_entries (LIKE public.audit_entries INCLUDING ALL)');
  try {
    await management?.query(`SELECT audit(1, 'test', 'webhook', '1', 'Test', '{}', '{"kind": "operator"}')`);
    expect(await count()).toBe(before + 1);
  } finally {
    await management?.query('DROP TABLE pg_temp.audit_entries');
  }
});
