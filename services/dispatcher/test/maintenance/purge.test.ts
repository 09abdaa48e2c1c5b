import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  addQuarantined,
  compressRunSteps,
  createJob,
  type Database,
  inTransaction,
  listQuarantined,
  openDatabase,
  saveRunSteps,
} from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  eventually,
  seedAccount,
  seedSubscription,
  type TestDatabase,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { purge, purgeJobs } from '../../src/maintenance/purge.ts';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
/** With the role of the dispatchers. */
let dispatcher: Database;
let accountId: number;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  dispatcher = openDatabase({ url: testDatabase.dispatcherUrl, connectTimeoutMs: WAIT_TIMEOUT_MS });
  accountId = (await seedAccount(database)).id;
});
afterEach(async () => {
  await dispatcher.close();
  await database.close();
  await testDatabase.drop();
});

const NOTHING_PURGED = {
  idempotencyKeys: 0,
  recoveries: 0,
  notices: 0,
  incidents: 0,
  jobAlerts: 0,
  runs: 0,
  runRequests: 0,
  subscriptions: 0,
  auditEntries: 0,
  quarantinedItems: 0,
};

const run = (changed: object = {}) =>
  purge(dispatcher.pool, { logRetentionDays: 30, runRetentionDays: 365, ...changed });

/** Inserts runs that were reported an hour less than this number of days ago. */
const reportRuns = (daysAgo: number, count: number) =>
  database.pool.query(
    `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name,
       engine_version, status, started_at, created_at)
     SELECT $1, $2::int * 100 + n, 1, 'a', 1, 'a', 1, 'a', '1', 'Success', now(),
       now() - $2::int * interval '1 day' + interval '1 hour'
     FROM generate_series(1, $3::int) AS n`,
    [accountId, daysAgo, count],
  );

async function saveStep(runId: number): Promise<void> {
  const steps = await compressRunSteps([
    {
      index: 1,
      name: 'Load',
      status: 'Success',
      started_at: null,
      finished_at: null,
      logs: 'Done',
      debug_logs: null,
    },
  ]);
  await inTransaction(dispatcher.pool, (transaction) =>
    saveRunSteps(transaction, { accountId, runId, accountBytesMax: 1_000_000 }, steps),
  );
}

test('the steps of a deleted run are deleted, and count no longer towards the quota of its account', async () => {
  await reportRuns(365, 1);
  await reportRuns(366, 2);
  for (const runId of [36_501, 36_601, 36_602]) await saveStep(runId);
  expect(await run({ batchSize: 1 })).toEqual({ ...NOTHING_PURGED, runs: 2 });
  const remaining = await database.prisma.runStep.findMany();
  expect(remaining).toMatchObject([{ runId: 36_501n }]);
  expect(await database.prisma.runStepsUsage.findMany()).toEqual([
    { accountId: BigInt(accountId), bytes: BigInt(remaining[0]?.storedBytes ?? 0) },
  ]);
});

test('the usage of an account is locked before its steps, as by callers that store steps', async () => {
  await reportRuns(366, 1);
  await saveStep(36_601);
  const client = await database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT FROM run_steps_usage FOR UPDATE');
    const purging = run();
    await eventually(async () => {
      const { rows } = await database.pool.query(
        'SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() <> pid AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())',
      );
      expect(rows).toHaveLength(1);
    });
    const { rows } = await client.query('SELECT run_id::int FROM run_steps FOR UPDATE NOWAIT');
    expect(rows).toEqual([{ run_id: 36_601 }]);
    await client.query('COMMIT');
    expect(await purging).toMatchObject({ runs: 1 });
  } finally {
    client.release();
  }
  expect(await database.prisma.runStep.count()).toBe(0);
  expect((await database.prisma.runStepsUsage.findFirst())?.bytes).toBe(0n);
});

test('all runs are deleted once their retention is over, and not before', async () => {
  await reportRuns(365, 3);
  await reportRuns(366, 7);
  await reportRuns(800, 4);
  expect(await run({ batchSize: 5 })).toEqual({ ...NOTHING_PURGED, runs: 11 });
  expect(await run()).toEqual(NOTHING_PURGED);
  expect(await database.prisma.run.count()).toBe(3);
});

const addIdempotencyKeys = (count: number, expiresAt: string) =>
  database.pool.query(
    `INSERT INTO idempotency_keys (id, body_hash, claim, claimed_until, expires_at)
     SELECT $2 || n, '', 'x', now(), $2::timestamptz FROM generate_series(1, $1::int) n`,
    [count, expiresAt],
  );

test('expired idempotency keys are deleted in statements of at most 1,000 rows', async () => {
  await addIdempotencyKeys(2_500, '2026-01-01');
  await addIdempotencyKeys(1, '9999-01-01');
  await database.pool.query(
    `CREATE FUNCTION limit_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF (SELECT count(*) FROM deleted) > 1000 THEN RAISE EXCEPTION 'too many rows'; END IF; RETURN NULL;
     END $$;
     CREATE TRIGGER limit_rows AFTER DELETE ON idempotency_keys REFERENCING OLD TABLE AS deleted
     FOR EACH STATEMENT EXECUTE FUNCTION limit_rows()`,
  );
  expect(await run()).toEqual({ ...NOTHING_PURGED, idempotencyKeys: 2_500 });
  expect(await database.prisma.idempotencyKey.count()).toBe(1);
});

test('a pass of the purge ends at its time limit, and the next pass continues', async () => {
  await addIdempotencyKeys(12, '2026-01-01');
  const limited = { batchSize: 5, passMaxMs: 0 };
  expect(await run(limited)).toMatchObject({ idempotencyKeys: 5 });
  expect(await run(limited)).toMatchObject({ idempotencyKeys: 5 });
  expect(await run(limited)).toMatchObject({ idempotencyKeys: 2 });
});

test('rows of a kind that cannot be deleted fail the purge after every other kind was purged', async () => {
  await addIdempotencyKeys(3, '2026-01-01');
  await reportRuns(366, 2);
  await database.pool.query(
    `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'of this table'; END $$;
     CREATE TRIGGER fail BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION fail()`,
  );
  const purged: unknown[] = [];
  const failed = run({ onPurged: (kind: string, count: number) => purged.push([kind, count]) });
  await expect(failed).rejects.toMatchObject({
    message: 'Failed: idempotencyKeys.',
    errors: [expect.objectContaining({ message: 'of this table' })],
  });
  expect(purged).toEqual([['runs', 2]]);
});

test('a stop of the dispatcher ends a pass of the purge after the current batch', async () => {
  await reportRuns(366, 7);
  expect(await run({ batchSize: 5, stopping: AbortSignal.abort() })).toMatchObject({ runs: 5 });
});

test('states of jobs at targets are deleted with the log', async () => {
  await database.pool.query(
    `INSERT INTO job_alerts (subscription_id, job_id, target, state, run_id, event_id, run_ended_at, updated_at)
     SELECT 'wsu_1', n, 't', 'resolve', n, 'wev_1', now(), now() - n * interval '1 day' FROM unnest('{1,29,31,32}'::int[]) AS n`,
  );
  expect(await run({ batchSize: 1 })).toMatchObject({ jobAlerts: 2 });
  expect(await run()).toMatchObject({ jobAlerts: 0 });
});

test('items that were set aside before the retention began are deleted in batches, until a stop or the time limit', async () => {
  const item = { accountId, kind: 'event', reason: 'r' } as const;
  const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'young'];
  await addQuarantined(
    database.pool,
    keys.map((key) => ({ ...item, key })),
  );
  await database.pool.query(
    "UPDATE quarantined_items SET created_at = now() - interval '31 days' WHERE key <> 'young'",
  );
  expect(await run({ batchSize: 2, stopping: AbortSignal.abort() })).toMatchObject({ quarantinedItems: 2 });
  expect(await run({ batchSize: 2, passMaxMs: 0 })).toMatchObject({ quarantinedItems: 2 });
  expect(await run({ batchSize: 2 })).toMatchObject({ quarantinedItems: 2 });
  expect(await listQuarantined(database.pool, { limit: 10 })).toMatchObject([{ key: 'young' }]);
});

test('a deleted subscription is purged with its recoveries once its deletion is older than the retention and it has no deliveries', async () => {
  const subscribe = async (deletedDaysAgo: number | null) => {
    const { id } = await seedSubscription(database, { accountId, clientUrl: 'http://127.0.0.1:1/' });
    await database.pool.query(
      "UPDATE subscriptions SET deleted_at = now() - $2::int * interval '1 day' WHERE id = $1",
      [id, deletedDaysAgo],
    );
    return id;
  };
  const alive = await subscribe(null);
  const recentlyDeleted = await subscribe(29);
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
  expect(await run()).toEqual({ ...NOTHING_PURGED, subscriptions: 1 });
  expect(await left()).toEqual([alive, recentlyDeleted, withDelivery].sort());
  await database.pool.query('DELETE FROM deliveries');
  expect(await run()).toEqual({ ...NOTHING_PURGED, subscriptions: 1 });
  expect(await left()).toEqual([alive, recentlyDeleted].sort());
});

test('entries of the audit log are deleted after a year, and not before', async () => {
  await database.pool.query(
    `INSERT INTO audit_entries (account_id, action, actor_kind, target_kind, target_id, target_name, created_at)
     SELECT $1, 'webhook.created', 'operator', 'webhook', days::text, '', now() - days * interval '1 day'
     FROM unnest('{364,366,800}'::int[]) days`,
    [accountId],
  );
  expect(await run({ batchSize: 1 })).toEqual({ ...NOTHING_PURGED, auditEntries: 2 });
  expect(await database.prisma.auditEntry.findMany()).toMatchObject([{ targetId: '364' }]);
});

test('old jobs without runs are deleted in batches, but not those that a webhook names or a user defined', async () => {
  const { id: subscriptionId } = await seedSubscription(database, {
    accountId,
    clientUrl: 'https://receiver.example.com/',
  });
  const addJob = async (name: string, daysAgo: number) => {
    const job = { accountId, name, projectName: 'Analytics', environmentName: 'Production' };
    const { id } = await createJob(database.prisma, job);
    const createdAt = new Date(Date.now() - daysAgo * 86_400_000);
    await database.prisma.job.update({ where: { id }, data: { createdAt } });
    return id;
  };
  const named = await addJob('named by a webhook', 400);
  const used = await addJob('with a run', 400);
  await addJob('young', 300);
  const defined = await addJob('defined by a user', 400);
  const hidden = await addJob('defined and deleted by a user', 400);
  await database.pool.query(`UPDATE jobs SET definition = '{}' WHERE id = ANY ($1)`, [[defined, hidden]]);
  await database.pool.query('UPDATE jobs SET deleted_at = now() WHERE id = $1', [hidden]);
  for (const name of ['unused', 'unused, too', 'the third']) await addJob(name, 400);
  await database.pool.query('UPDATE subscriptions SET job_ids = $1 WHERE id = $2', [[named], subscriptionId]);
  await reportRuns(1, 1);
  await database.pool.query('UPDATE runs SET job_id = $1', [used]);
  expect(await purgeJobs(dispatcher.pool, { runRetentionDays: 365, batchSize: 2 })).toBe(4);
  const left = (await database.prisma.job.findMany()).map(({ name }) => name).sort();
  expect(left).toEqual([
    'Hourly load',
    'Nightly build',
    'defined by a user',
    'named by a webhook',
    'with a run',
    'young',
  ]);
});
