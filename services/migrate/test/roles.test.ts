import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openDatabase, requireSchema } from '@runhook/database';
import type { DatabaseRoles } from '@runhook/database/migrate';
import { createTestDatabase, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { migrateAll } from '../src/migrate-all.ts';
import { type MigrateSettings, readSettings } from '../src/settings.ts';

let testDatabase: TestDatabase;
let roles: DatabaseRoles;
/** A role of the database that may create no roles, as of a managed PostgreSQL. */
let plain: { name: string; url: string };

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  const name = new URL(testDatabase.url).pathname.slice(1);
  roles = {
    owner: `${name}_owner`,
    management: { name: `${name}_management`, password: 'first' },
    dispatcher: { name: `${name}_dispatcher`, password: 'first' },
  };
  plain = { name: `${name}_plain`, url: urlOf(`${name}_plain`, 'plain') };
  await query(`DROP SCHEMA public CASCADE; DROP SCHEMA bullmq CASCADE; CREATE SCHEMA public;
    CREATE ROLE ${plain.name} LOGIN PASSWORD 'plain'`);
});
afterEach(async () => {
  for (const role of [roles.management.name, roles.dispatcher.name, roles.owner, plain.name]) {
    const [found] = await query(`SELECT FROM pg_roles WHERE rolname = '${role}'`);
    if (found !== undefined) await query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
  }
  await testDatabase.drop();
});

const urlOf = (username: string, password: string) =>
  Object.assign(new URL(testDatabase.url), { username, password }).href;

async function query(text: string, url = testDatabase.url): Promise<Record<string, unknown>[]> {
  const { pool, close } = openDatabase({ url, connectionsMax: 1, connectTimeoutMs: WAIT_TIMEOUT_MS });
  return await pool
    .query(text)
    .then(({ rows }) => rows)
    .finally(close);
}

const silent = { info: () => undefined, warn: () => undefined } as never;
const run = (changed: Partial<MigrateSettings> = {}) =>
  migrateAll(
    {
      databaseUrl: testDatabase.url,
      queueUrl: testDatabase.url,
      migrateWaitSeconds: 10,
      logLevel: 'info',
      logRetentionDays: 30,
      roles,
      ...changed,
    },
    silent,
  );

/** Returns the owners of all tables, sequences, functions and types of Runhook and BullMQ. */
const owners = async () =>
  (
    await query(`
      SELECT DISTINCT pg_get_userbyid(owner)::text AS owner FROM (
        SELECT relnamespace AS schema, relowner AS owner FROM pg_class
        UNION ALL SELECT pronamespace, proowner FROM pg_proc
        UNION ALL SELECT typnamespace, typowner FROM pg_type
        UNION ALL SELECT oid, nspowner FROM pg_namespace WHERE nspname = 'bullmq') AS objects
      WHERE schema::regnamespace::text IN ('public', 'bullmq')`)
  ).map(({ owner }) => owner);

test('migrate creates the three roles, the owner without a login, and a later run sets changed passwords', async () => {
  await run();
  expect(await owners()).toEqual([roles.owner]);
  expect(
    await query(`SELECT rolname::text AS name, rolcanlogin AS "canLogin", rolsuper OR rolcreaterole OR rolcreatedb AS "isPowerful"
      FROM pg_roles WHERE rolname ~ '^${roles.owner.replace(/_owner$/, '')}_[mdo]' ORDER BY 1`),
  ).toEqual([
    { name: roles.dispatcher.name, canLogin: true, isPowerful: false },
    { name: roles.management.name, canLogin: true, isPowerful: false },
    { name: roles.owner, canLogin: false, isPowerful: false },
  ]);
  const schemaOf = async (service: 'management' | 'dispatcher', password: string) => {
    const { pool, close } = openDatabase({ url: urlOf(roles[service].name, password), connectionsMax: 1 });
    await requireSchema(pool).finally(close);
  };
  await schemaOf('management', 'first');
  await schemaOf('dispatcher', 'first');
  await run({ roles: { ...roles, management: { ...roles.management, password: 'second: 100 % "new"' } } });
  await schemaOf('management', encodeURIComponent('second: 100 % "new"'));
  await expect(schemaOf('management', 'first')).rejects.toMatchObject({ code: '28P01' });
  const jit = `SELECT reset_val AS jit FROM pg_settings WHERE name = 'jit'`;
  const [settings] = await query(jit, urlOf(roles.dispatcher.name, 'first'));
  expect(settings).toEqual({ jit: 'off' });
});

test('migrate makes the owner the owner of the objects of an installation with one role for everything, and revokes other rights', async () => {
  await query(`GRANT USAGE, CREATE ON SCHEMA public TO ${plain.name};
    DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO ${plain.name}', current_database()); END $$`);
  await run({ databaseUrl: plain.url, queueUrl: plain.url, roles: undefined as never });
  expect(await owners()).toEqual([plain.name]);
  await query(`CREATE ROLE ${roles.management.name} LOGIN;
    GRANT ALL ON ALL TABLES IN SCHEMA public TO ${roles.management.name};
    GRANT EXECUTE ON FUNCTION drop_day_partition(text, date) TO PUBLIC, ${roles.management.name}`);
  await run();
  expect(await owners()).toEqual([roles.owner]);
  const [granted] = await query(`
    SELECT has_table_privilege(role, '_prisma_migrations', 'DELETE') AS migrations,
      has_table_privilege(role, 'attempts_default', 'DELETE') AS partition,
      has_function_privilege(role, 'drop_day_partition(text, date)', 'EXECUTE') AS function
    FROM (VALUES ('${roles.management.name}')) AS roles (role)`);
  expect(granted).toEqual({ migrations: false, partition: false, function: false });
});

test('migrate without the right to create roles fails with the SQL for an administrator, and succeeds after it', async () => {
  await query(`GRANT USAGE, CREATE ON SCHEMA public TO ${plain.name}`);
  const asPlain = { databaseUrl: plain.url, queueUrl: plain.url };
  const failure = await run(asPlain).then(
    () => '',
    ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
  );
  expect(failure).toMatch(/^roles_missing: /);
  expect(failure).not.toMatch(/first|SCRAM/);
  const sql = /\n\n([\s\S]*)\n\nThen run migrate again\.$/.exec(failure)?.[1] ?? '';
  expect(sql.split('\n').map((line) => line.replaceAll(roles.owner.slice(0, -6), 'x'))).toEqual([
    'CREATE ROLE "x_owner" NOLOGIN;',
    `CREATE ROLE "x_management" LOGIN PASSWORD '<the password in MANAGEMENT_DATABASE_URL>';`,
    'ALTER ROLE "x_management" IN DATABASE x SET jit = off;',
    `CREATE ROLE "x_dispatcher" LOGIN PASSWORD '<the password in DISPATCHER_DATABASE_URL>';`,
    'ALTER ROLE "x_dispatcher" IN DATABASE x SET jit = off;',
    'GRANT "x_owner" TO "x_plain";',
    'GRANT USAGE, CREATE ON SCHEMA public TO "x_owner";',
    'GRANT CREATE ON DATABASE x TO "x_owner";',
    'GRANT USAGE ON SCHEMA public TO "x_management", "x_dispatcher";',
  ]);
  expect(await query(`SELECT FROM pg_roles WHERE rolname = '${roles.owner}'`)).toEqual([]);

  await query(sql);
  await run(asPlain);
  expect(await owners()).toEqual([roles.owner]);
  await run(asPlain);
});

test('migrate fails with the SQL for an administrator where PostgreSQL only warns that a grant had no effect', async () => {
  await query(`GRANT USAGE, CREATE ON SCHEMA public TO ${plain.name}; ALTER ROLE ${plain.name} CREATEROLE`);
  const asPlain = { databaseUrl: plain.url, queueUrl: plain.url };
  await expect(run(asPlain)).rejects.toMatchObject({
    code: 'roles_missing',
    message: expect.stringContaining(`GRANT USAGE, CREATE ON SCHEMA public TO "${roles.owner}";`) as unknown,
  });
  expect(await query(`SELECT FROM pg_roles WHERE rolname = '${roles.owner}'`)).toEqual([]);
});

test('the settings of migrate name three different roles, with passwords that no message shows', () => {
  const settings = {
    DATABASE_URL: 'postgres://admin:secret-0@db/x',
    MANAGEMENT_DATABASE_URL: 'postgres://runhook_management:secret-1@pooler/x',
    DISPATCHER_DATABASE_URL: 'postgres://runhook_dispatcher:secret%2D2@db/x',
  };
  expect(readSettings(settings).roles).toEqual({
    owner: 'runhook_owner',
    management: { name: 'runhook_management', password: 'secret-1' },
    dispatcher: { name: 'runhook_dispatcher', password: 'secret-2' },
  });
  expect(readSettings({ DATABASE_URL: settings.DATABASE_URL }).roles).toBeUndefined();
  for (const invalid of [
    { DISPATCHER_DATABASE_URL: '' },
    { DISPATCHER_DATABASE_URL: settings.MANAGEMENT_DATABASE_URL },
    { DISPATCHER_DATABASE_URL: settings.DATABASE_URL },
    { DISPATCHER_DATABASE_URL: 'postgres://db/x' },
    { DISPATCHER_DATABASE_URL: 'postgres://Robert:secret-2@db/x' },
    { DISPATCHER_DATABASE_URL: 'postgres://runhook_dispatcher:s%C3%A9cret-2@db/x' },
    { DATABASE_OWNER_ROLE: 'runhook_management' },
    { DATABASE_OWNER_ROLE: 'x; DROP TABLE users' },
  ]) {
    const read = () => readSettings({ ...settings, ...invalid });
    expect(read).toThrow(/DISPATCHER_DATABASE_URL|DATABASE_OWNER_ROLE/);
    expect(read).not.toThrow(/secret/);
  }
});
