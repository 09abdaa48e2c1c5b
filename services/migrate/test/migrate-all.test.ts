import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { MIGRATION_NAMES, openDatabase } from '@runhook/database';
import { createTestDatabase, startTcpProxy, type TestDatabase } from '@runhook/testing';
import { migrateAll } from '../src/migrate-all.ts';
import type { MigrateSettings } from '../src/settings.ts';

interface Line {
  fields: { applied?: string[]; queueSchemaVersion?: number };
  text: string;
}

let testDatabase: TestDatabase;
let lines: Line[];
const logger = {
  info: (fields: Line['fields'], text: string) => void lines.push({ fields, text }),
  warn: (fields: Line['fields'], text: string) => void lines.push({ fields, text }),
} as never;

beforeEach(async () => {
  lines = [];
  testDatabase = await createTestDatabase();
  await onDatabase('DROP SCHEMA public CASCADE');
  await onDatabase('CREATE SCHEMA public');
});
afterEach(() => testDatabase.drop());

async function onDatabase(text: string): Promise<Record<string, unknown>[]> {
  const database = openDatabase({ url: testDatabase.url });
  try {
    return (await database.pool.query(text)).rows;
  } finally {
    await database.close();
  }
}

function settings(changed: Partial<MigrateSettings> = {}): MigrateSettings {
  return {
    databaseUrl: testDatabase.url,
    migrateWaitSeconds: 10,
    logLevel: 'info',
    logRetentionDays: 30,
    ...changed,
  };
}

/** Logged without the URLs of the services. */
const ONE_ROLE = {
  fields: {},
  text: expect.stringMatching(/^the services use the role that owns the tables: set MANAGEMENT_DATABASE_URL/),
};

const applied = () => lines.flatMap(({ fields }) => fields.applied ?? []);

test('two concurrent runs of migrate apply each migration once, and a third run applies none', async () => {
  await Promise.all([migrateAll(settings(), logger), migrateAll(settings(), logger)]);
  expect(applied()).toEqual(MIGRATION_NAMES);
  lines = [];
  await migrateAll(settings(), logger);
  expect(lines).toEqual([{ fields: { applied: [] }, text: 'the schema is up to date' }, ONE_ROLE]);
});

test('a run of migrate logs how many events it set aside and how many deliveries lost their headers, because it could not rewrite them', async () => {
  await migrateAll(settings(), logger);
  await onDatabase(`
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
    VALUES (current_date, 'evt_1', 1, 'job.run.errored', '1795428672', '"no event"');
    INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name, started_at,
                            request_headers, response_headers)
    VALUES (current_date, 'dlv_1', 1, 'wsu_1', 'evt_1', 'job.run.errored', 12, 42, 'x', 'infinity', '"Runhook/0.1.0"', '[5]');
    COMMENT ON TABLE events IS 'rewrite pending'`);
  lines = [];
  await migrateAll(settings(), logger);
  expect(lines).toMatchObject([
    {},
    { fields: { rewritten: 0 } },
    {
      fields: {
        setAside: 1,
        reason: expect.stringMatching(/^evt_1 of events_\w+ could not be rewritten: ./),
      },
      text: 'unreadable events set aside: list them with `admin queue failed`',
    },
    { fields: { rewritten: 0 } },
    {
      fields: {
        withoutHeaders: 1,
        reason: expect.stringMatching(/^dlv_1 of deliveries_\w+ could not be rewritten: ./),
      },
      text: 'request and response headers in the log could not be read and were removed; the rest of their rows is unchanged',
    },
    ONE_ROLE,
  ]);
});

test('a run of migrate disables JIT for later sessions of the role that migrates', async () => {
  await migrateAll(settings(), logger);
  const rows = await onDatabase(
    `SELECT setconfig FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
     WHERE d.datname = current_database() AND setrole = current_user::regrole`,
  );
  expect(rows).toEqual([{ setconfig: ['jit=off'] }]);
});

test('a run of migrate by a role that may not change its own settings succeeds, and logs that JIT stays on', async () => {
  await migrateAll(settings(), logger);
  lines = [];
  const role = `${new URL(testDatabase.url).pathname.slice(1)}_restricted`;
  await onDatabase(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  // A managed PostgreSQL may forbid the change; this one forbids a function that the change calls, with the same code.
  await onDatabase(
    `GRANT ALL ON SCHEMA public TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role};
     REVOKE EXECUTE ON FUNCTION pg_advisory_xact_lock(bigint) FROM PUBLIC`,
  );
  try {
    const url = Object.assign(new URL(testDatabase.url), { username: role, password: 'secret' });
    await migrateAll(settings({ databaseUrl: url.href }), logger);
    expect(lines.map(({ text }) => text)).toEqual([
      'the schema is up to date',
      expect.stringMatching(/^JIT stays on for connections of a pooler/),
      ONE_ROLE.text,
    ]);
  } finally {
    await onDatabase(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  }
});

test('concurrent and later runs of migrate create the schema of a queue in PostgreSQL once', async () => {
  const withQueue = settings({ queueUrl: testDatabase.url });
  await Promise.all([migrateAll(withQueue, logger), migrateAll(withQueue, logger)]);
  await migrateAll(withQueue, logger);
  const versions = lines
    .map(({ fields }) => fields.queueSchemaVersion)
    .filter((version) => version !== undefined);
  expect(new Set(versions).size).toBe(1);
  expect(versions).toHaveLength(3);
  const [{ count }] = (await onDatabase('SELECT count(*)::int AS count FROM bullmq.migration')) as [
    { count: number },
  ];
  expect(count).toBeGreaterThan(0);
});

test('a run of migrate with a queue on Redis does not connect to Redis, which needs no schema', async () => {
  await migrateAll(settings({ queueUrl: 'redis://nowhere.invalid' }), logger);
  expect(lines.some(({ fields }) => 'queueSchemaVersion' in fields)).toBe(false);
});

test('a run of migrate waits for a database that starts late', async () => {
  const proxy = await startTcpProxy(testDatabase.url);
  await proxy.cut();
  try {
    const migrating = migrateAll(settings({ databaseUrl: proxy.url }), {
      info: (logger as { info: () => void }).info,
      // Called when the first connection has failed.
      warn: () => void proxy.restore(),
    } as never);
    await migrating;
    expect(applied()).toEqual(MIGRATION_NAMES);
  } finally {
    await proxy.close();
  }
});

test('a run of migrate fails if the database is unavailable for longer than MIGRATE_WAIT_SECONDS', async () => {
  const proxy = await startTcpProxy(testDatabase.url);
  await proxy.cut();
  await expect(
    migrateAll(settings({ databaseUrl: proxy.url, migrateWaitSeconds: 0 }), logger),
  ).rejects.toMatchObject({ code: 'database_unreachable' });
  await proxy.close();
});

test('a run of migrate fails at once, without waiting, if the server has no database of that name', async () => {
  const url = new URL(testDatabase.url);
  url.pathname = '/runhook_no_such_database';
  await expect(migrateAll(settings({ databaseUrl: url.href }), logger)).rejects.toMatchObject({
    code: '3D000',
  });
  expect(lines).toEqual([]);
});
