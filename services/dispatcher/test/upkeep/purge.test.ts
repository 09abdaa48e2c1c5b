import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  IN_VAIN_MS,
  seedAccount,
  seedSubscription,
  type TestDatabase,
} from '@runhook/testing';
import { purge } from '../../src/upkeep/purge.ts';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let accountId: number;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: IN_VAIN_MS });
  accountId = (await seedAccount(database)).id;
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

const run = (changed: object = {}) =>
  purge(database.pool, { logRetentionDays: 30, runRetentionDays: 365, ...changed });

/** Reported on as many days before now. */
const reportRuns = (daysAgo: number, count: number) =>
  database.pool.query(
    `INSERT INTO runs (account_id, job_id, job_name, project_id, project_name, environment_id, environment_name,
       engine_version, status, started_at, created_at)
     SELECT $1, 1, 'a', 1, 'a', 1, 'a', '1', 'Success', now(), now() - $2::int * interval '1 day' + interval '1 hour'
     FROM generate_series(1, $3::int)`,
    [accountId, daysAgo, count],
  );

test('runs go when their own retention is over, however many, and not before', async () => {
  await reportRuns(365, 3);
  await reportRuns(366, 7);
  await reportRuns(800, 4);
  expect(await run({ batchSize: 5 })).toEqual({ runs: 11, subscriptions: 0, auditEntries: 0 });
  expect(await run()).toEqual({ runs: 0, subscriptions: 0, auditEntries: 0 });
  expect(await database.prisma.run.count()).toBe(3);
});

test('a stop ends it after the batch', async () => {
  await reportRuns(366, 7);
  expect(await run({ batchSize: 5, stopping: AbortSignal.abort() })).toMatchObject({ runs: 5 });
});

test('a deleted subscription goes with the log, once none of its deliveries is left, and its recoveries with it', async () => {
  const subscribe = async (deletedDaysAgo: number | null) => {
    const { id } = await seedSubscription(database, { accountId, clientUrl: 'http://127.0.0.1:1/' });
    await database.pool.query(
      "UPDATE subscriptions SET deleted_at = now() - $2::int * interval '1 day' WHERE id = $1",
      [id, deletedDaysAgo],
    );
    return id;
  };
  const alive = await subscribe(null);
  const justDeleted = await subscribe(29);
  const withDelivery = await subscribe(31);
  const old = await subscribe(31);
  await database.pool.query(
    `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name)
     VALUES (current_date, 'wdl_1', $1, $2, 'wev_1', 'job.run.started', 1, 1, 'a hook')`,
    [accountId, withDelivery],
  );
  await database.pool.query(
    `INSERT INTO recoveries (id, subscription_id, status, since, until, delivery_status, total_count)
     VALUES ('wrc_1', $1, 'done', now(), now(), 'failed', 1)`,
    [old],
  );
  const left = async () =>
    (await database.pool.query('SELECT id FROM subscriptions')).rows.map(({ id }) => id).sort();
  expect(await run()).toEqual({ runs: 0, subscriptions: 1, auditEntries: 0 });
  expect(await left()).toEqual([alive, justDeleted, withDelivery].sort());
  await database.pool.query('DELETE FROM deliveries');
  expect(await run()).toEqual({ runs: 0, subscriptions: 1, auditEntries: 0 });
  expect(await left()).toEqual([alive, justDeleted].sort());
});

test('entries of the audit log go after a year, which is when the database lets them', async () => {
  await database.pool.query(
    `INSERT INTO audit_entries (account_id, action, actor_kind, target_kind, target_id, target_name, created_at)
     SELECT $1, 'webhook.created', 'operator', 'webhook', days::text, '', now() - days * interval '1 day'
     FROM unnest('{364,366,800}'::int[]) days`,
    [accountId],
  );
  expect(await run({ batchSize: 1 })).toEqual({ runs: 0, subscriptions: 0, auditEntries: 2 });
  expect(await database.prisma.auditEntry.findMany()).toMatchObject([{ targetId: '364' }]);
});
