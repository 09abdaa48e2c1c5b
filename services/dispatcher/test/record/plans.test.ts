import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, idDay } from '@runhook/contract';
import { type Database, ensureDayPartitions, openDatabase, type Pool } from '@runhook/database';
import {
  countRowsRead,
  createTestDatabase,
  EXAMPLE_JOB,
  type ExecutedPlan,
  exampleEvent,
  openExplainedConnection,
  type TestDatabase,
} from '@runhook/testing';
import { limitPending } from '../../src/maintenance/pending-limit.ts';
import { reconcile } from '../../src/maintenance/reconcile.ts';
import { recordAttempts } from '../../src/record/attempts.ts';
import { commitEvents } from '../../src/record/commit-events.ts';
import { claimDeferred, deferDeliveries, hasDeferred, loadDeferredKeys } from '../../src/record/deferred.ts';
import {
  cancelDeliveries,
  type DeliveryKey,
  loadAccountId,
  loadDeliveries,
  loadPendingDeliveries,
} from '../../src/record/deliveries.ts';
import { loadEventStates } from '../../src/record/event-states.ts';
import { loadRunDeliveries, releaseSuccessors } from '../../src/record/run-order.ts';
import { testQuarantine } from '../silent-quarantine.ts';

/*
 * PostgreSQL chooses the kind of plan (`plan_cache_mode = auto`): a statement that names its days gets a custom plan,
 * which opens only these days. The test counts the rows that are read, on a log without and with statistics.
 */

const ACCOUNT_ID = 1;
const SUBSCRIPTION_ID = 'wsu_000000000000000000000000000';
const DAY_MS = 86_400_000;
/** Executions of each statement: PostgreSQL considers a generic plan after five. */
const EXECUTIONS = 7;
const BATCH = 20;
/** Maximum rows to read per key and table. A partition of a few pages, with fewer rows, is read as fast as an index. */
const ROWS_MAX = 64;
/** Number of deferred deliveries, and of overdue ones; all others are delivered. */
const DEFERRED = 10;

/** Statements that name their days. */
const SOME_DAYS = [
  'account-of-delivery',
  'cancel-deliveries',
  'event-states',
  'load-deliveries',
  'load-events',
  'defer-deliveries',
  'pending-of-event',
  'record-attempts',
];
/** Statements over all days of an account, or of all accounts. */
const ALL_DAYS = [
  'claim-deferred',
  'count-deferred',
  'deferred-keys',
  'has-deferred',
  'overdue-deliveries',
  'deliveries-of-runs',
  'release-successors',
];
/** Statements for an event that is delivered at the first attempt: they open only the days of the rows that they insert. */
const NO_DAY = ['claim-events', 'insert-events'];

interface Log {
  keys: DeliveryKey[];
  eventIds: string[];
}

const attemptOf = (key: DeliveryKey) => ({
  ...key,
  day: idDay('delivery', key.deliveryId),
  number: 1,
  trigger: 'automatic' as const,
  startedAt: new Date(),
  durationMs: 5,
  httpStatusCode: 500,
  error: { code: 'unsuccessful_status', message: 'x' },
  requestHeaders: {},
  response: null,
  timings: null,
  status: 'failed' as const,
  reason: 'x',
  nextDelayMs: null,
});

const queue = {
  requeue: async () => {},
  findQueued: async () => new Set<string>(),
  findActiveLanes: async () => new Set<string>(),
};

/** Executes each statement once, with all keys. */
async function executeAll(pool: Pool, { keys, eventIds }: Log): Promise<void> {
  const [key] = keys;
  const [eventId] = eventIds;
  if (key === undefined || eventId === undefined) throw new Error('a log without deliveries');
  const lane = { subscriptionId: SUBSCRIPTION_ID, accountId: ACCOUNT_ID };
  await loadDeliveries(pool, keys);
  await loadAccountId(pool, { deliveryId: key.deliveryId, cycle: 0 });
  await loadPendingDeliveries(pool, { eventId, accountId: ACCOUNT_ID }, 0);
  await hasDeferred(pool, lane);
  await loadDeferredKeys(pool, { ...lane, limit: 500 });
  await claimDeferred(pool, { ...lane, limit: 1, permitsMax: 1_000, attemptMs: 0 });
  await limitPending({ pool, pendingMax: 100 });
  await loadRunDeliveries(pool, lane, ['1', '2', '3']);
  await releaseSuccessors(pool, [{ ...lane, eventId, runId: '1' }]);
  const retryPolicy = { retriesMax: 5, baseDelayMs: 20 };
  const grace = { graceMs: 0, eventGraceMs: 0 };
  const quarantine = testQuarantine(pool);
  await reconcile({ pool, events: queue, deliveries: queue, retryPolicy, quarantine, ...grace });
  await deferDeliveries(pool, keys);
  await recordAttempts(pool, keys.map(attemptOf));
  await cancelDeliveries(
    pool,
    keys.map((one) => ({ ...one, reason: 'x' })),
  );
  // The account does not exist, so nothing is committed.
  const event = exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: 9 });
  const delivery = { id: deliveryIdFor(event.eventId, 'wsu_x'), subscriptionId: 'wsu_x', webhookName: 'x' };
  const deliveries = [{ ...delivery, isDeferred: false }];
  const commit = { event, version: '1', deliveries };
  await commitEvents(pool, [{ ...commit, isRecorded: true }]);
  await commitEvents(pool, [commit]);
  const planned = eventIds.slice(0, BATCH).map((id) => ({ event: { ...event, eventId: id }, version: null }));
  await loadEventStates(
    pool,
    planned.map((one) => ({ ...one, event: { ...one.event, accountId: ACCOUNT_ID } })),
  );
}

/** Writes deliveries of one account with their events, all delivered except for a few that are deferred or overdue. */
async function fill(pool: Pool, count: number, timeMs: number): Promise<Log> {
  const eventIds = Array.from({ length: count }, () => createId('event', timeMs));
  const ids = eventIds.map((id) => deliveryIdFor(id, SUBSCRIPTION_ID));
  const day = idDay('event', eventIds[0] ?? '');
  await pool.query(INSERT_EVENTS, [day, eventIds, ACCOUNT_ID]);
  await pool.query(INSERT_DELIVERIES, [day, ids, eventIds, ACCOUNT_ID, SUBSCRIPTION_ID, DEFERRED]);
  await pool.query(INSERT_UNDISPATCHED, [day, eventIds.slice(0, DEFERRED), ACCOUNT_ID]);
  const some = ids.slice(0, BATCH).map((deliveryId) => ({ deliveryId, accountId: ACCOUNT_ID }));
  return { keys: some, eventIds };
}

const INSERT_EVENTS = `
  INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
  SELECT $1::date, id, $3::bigint, 'job.run.started', '2026-01-31T19:28:07.000000000Z',
    json_build_object('jobId', '12', 'jobName', 'Nightly build', 'runId', '7', 'environmentId', '4', 'environmentName', 'Production',
      'engineVersion', '1.9.2', 'projectName', 'Analytics', 'projectId', '3', 'runStatus', 'Running', 'runStatusCode', 3,
      'runStatusMessage', 'None', 'runReason', 'x', 'runStartedAt', '2026-01-31T19:28:07Z')
  FROM unnest($2::text[]) AS id`;
const INSERT_DELIVERIES = `
  INSERT INTO deliveries (day, id, account_id, subscription_id, webhook_name, event_id, event_type, job_id, run_id, status,
    deferred_at, next_attempt_at, attempt_count)
  SELECT $1::date, id, $4::bigint, $5::text, 'x', event_id, 'job.run.started', 1, n,
    CASE WHEN n <= 2 * $6::int THEN 'pending' ELSE 'delivered' END, CASE WHEN n <= $6::int THEN now() END,
    CASE WHEN n > $6::int AND n <= 2 * $6::int THEN now() - interval '1 hour' END, 0
  FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS d (id, event_id, n)`;
const INSERT_UNDISPATCHED = `
  INSERT INTO undispatched_events (day, event_id, account_id, created_at)
  SELECT $1::date, id, $3::bigint, now() - interval '1 hour' FROM unnest($2::text[]) AS id`;

const compact = (day: string) => day.replaceAll('-', '');
/** Returns the partitions in a plan, whether they were opened or not. */
const daysOf = (plan: ExecutedPlan): string[] => [
  ...new Set(
    JSON.stringify(plan).match(/(?<="(?:events|deliveries|attempts)_)(?:\d{8}|default)(?=")/g) ?? [],
  ),
];

describe.each([10, 40])('on a log of %i partitions', (partitions) => {
  let testDatabase: TestDatabase;
  let admin: Database;
  beforeAll(async () => {
    testDatabase = await createTestDatabase();
    admin = openDatabase({ url: testDatabase.url });
    await ensureDayPartitions(admin.pool);
    const more = `SELECT ensure_day_partitions((now() AT TIME ZONE 'UTC')::date - $1::int, (now() AT TIME ZONE 'UTC')::date)`;
    await admin.pool.query(more, [partitions - 9]);
    const { rows } = await admin.pool.query(
      `SELECT count(*)::int AS count FROM pg_inherits WHERE inhparent = 'deliveries'::regclass`,
    );
    expect(rows[0].count).toBe(partitions);
  });
  afterAll(async () => {
    await admin.close();
    await testDatabase.drop();
  });

  test.each([60, 250, 3_000])(
    'a plan that PostgreSQL makes while a day is empty reads few rows of the day once it has %i events',
    async (count) => {
      const { pool } = admin;
      await pool.query('TRUNCATE events, deliveries, attempts, undispatched_events');
      await fill(pool, 100, Date.now() - DAY_MS);
      const none = { deliveryId: deliveryIdFor(createId('event'), SUBSCRIPTION_ID), accountId: ACCOUNT_ID };
      const connection = await openExplainedConnection(testDatabase.url);
      try {
        for (let execution = 0; execution < EXECUTIONS; execution += 1)
          await executeAll(connection.pool, { keys: [none], eventIds: [createId('event')] });
        for (const isAnalysed of [false, true]) {
          await pool.query('DELETE FROM undispatched_events');
          const log = await fill(pool, count, Date.now());
          if (isAnalysed) await pool.query('ANALYZE events, deliveries, attempts');
          const plans = await connection.explain(() => executeAll(connection.pool, log));
          const names = plans.map(({ name }) => name);
          expect(names).toEqual(expect.arrayContaining([...SOME_DAYS, ...ALL_DAYS, ...NO_DAY]));
          for (const { name, plan, isCustom } of plans) {
            const of = { name, isAnalysed };
            const rows = countRowsRead(plan, /^(events|deliveries|attempts)_/);
            expect({ ...of, jit: plan.JIT }).toEqual({ ...of, jit: undefined });
            if (NO_DAY.includes(name)) expect({ ...of, days: daysOf(plan) }).toEqual({ ...of, days: [] });
            if (!SOME_DAYS.includes(name) && !ALL_DAYS.includes(name)) continue;
            // The statement reads two tables, and finds the updated row once more.
            const most = ROWS_MAX * BATCH * 3;
            if (!(rows <= most))
              throw new Error(`${JSON.stringify(of)}: ${rows} rows of ${JSON.stringify(plan)}`);
            if (!SOME_DAYS.includes(name)) continue;
            const today = compact(new Date().toISOString().slice(0, 10));
            expect({ ...of, isCustom, days: daysOf(plan) }).toEqual({ ...of, isCustom: true, days: [today] });
          }
        }
      } finally {
        await connection.close();
      }
    },
  );

  test('a statement with keys of two days opens only the partitions of these days', async () => {
    const [before, now] = [
      await fill(admin.pool, BATCH, Date.now() - DAY_MS),
      await fill(admin.pool, BATCH, Date.now()),
    ];
    const keys = [...before.keys, ...now.keys];
    const connection = await openExplainedConnection(testDatabase.url);
    try {
      for (let execution = 0; execution < EXECUTIONS; execution += 1)
        await loadDeliveries(connection.pool, keys);
      const [loaded] = await connection.explain(() => loadDeliveries(connection.pool, keys));
      const days = [...new Set(keys.map(({ deliveryId }) => compact(idDay('delivery', deliveryId))))];
      expect(loaded).toMatchObject({ name: 'load-deliveries', isCustom: true });
      expect(daysOf(loaded?.plan as ExecutedPlan).sort()).toEqual(days.sort());
    } finally {
      await connection.close();
    }
  });
});
