import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  createId,
  deliveryIdFor,
  idDay,
  type JobRunEvent,
  parseRunSteps,
  type RunStep,
} from '@runhook/contract';
import { compressRunSteps, deleteRunSteps, type Pool, saveRunSteps } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  type AccessedPartitions,
  createExplainingPool,
  createSubpartitionedDatabase,
  exampleEvent,
  type RestrictedStatement,
  readLeafIndex,
  seedAccount,
  seedSubscription,
  type TestDatabase,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { reconcileLanes } from '../../src/maintenance/lanes.ts';
import { limitPending } from '../../src/maintenance/pending-limit.ts';
import { reconcile } from '../../src/maintenance/reconcile.ts';
import { recover } from '../../src/maintenance/recover.ts';
import { recordAttempts } from '../../src/record/attempts.ts';
import type { EventCommit } from '../../src/record/commit-events.ts';
import { claimDeferred, deferDeliveries, hasDeferred, loadDeferredKeys } from '../../src/record/deferred.ts';
import {
  cancelDeliveries,
  loadAccountId,
  loadDeliveries,
  loadPendingDeliveries,
} from '../../src/record/deliveries.ts';
import { loadEventStates } from '../../src/record/event-states.ts';
import {
  holdDeliveries,
  loadRunDeliveries,
  loadUndispatchedOfRuns,
  markOutOfOrder,
  releaseSuccessors,
} from '../../src/record/run-order.ts';
import { releaseWaiting, withEndedPredecessor } from '../../src/record/waiting.ts';
import { commitResults, insertUndispatched } from '../log-rows.ts';
import { testQuarantine } from '../silent-quarantine.ts';

/*
 * On a log whose days are partitioned by account, as in a distributed PostgreSQL, a statement opens only the partitions
 * of the accounts that it names (docs/scaling.md#a-record-that-can-be-spread).
 */

/**
 * Statements on the path of a delivery, with the number of accounts whose partitions each opens. Statements with
 * `anyDay` search the account's days until they have enough rows; the others name their day.
 */
const HOT_STATEMENTS: Record<string, { events?: 1 | 2; deliveries?: 1 | 2; anyDay?: true }> = {
  'event-states': { events: 2 },
  'claim-events': {},
  'insert-events': {},
  'load-deliveries': { events: 2, deliveries: 2 },
  'pending-of-event': { deliveries: 1 },
  'defer-deliveries': { deliveries: 2 },
  'record-attempts': { deliveries: 2 },
  'cancel-deliveries': { deliveries: 2 },
  'load-events': { events: 2 },
  'deferred-keys': { deliveries: 1, anyDay: true },
  'has-deferred': { deliveries: 1, anyDay: true },
  'claim-deferred': { events: 1, deliveries: 1, anyDay: true },
  'count-deferred': { deliveries: 1, anyDay: true },
  'begin-recovery-page': { deliveries: 1, anyDay: true },
  'events-to-recover': { events: 1, anyDay: true },
  'deliveries-to-recover': { deliveries: 1 },
  'insert-recovered-deliveries': {},
  'begin-recovered-cycles': { deliveries: 1 },
  'deliveries-of-runs': { deliveries: 1, anyDay: true },
  'undispatched-of-runs': { events: 1, anyDay: true },
  'hold-deliveries': { deliveries: 1 },
  'mark-out-of-order': { deliveries: 2 },
  'predecessors-of-waiting': { deliveries: 1 },
  'release-waiting': { deliveries: 1 },
  'release-successors': { deliveries: 1, anyDay: true },
};

/** Statements of packages/database that the dispatcher runs on the log. */
const SHARED_STATEMENTS = new URL('../../../../packages/database/src/events-to-recover.ts', import.meta.url);

/** Statements over all accounts that search due or old rows a few times a minute, or serve a job of the previous release. */
const ALL_ACCOUNTS = [
  'account-of-delivery',
  'accounts-with-deferred',
  'accounts-with-expired',
  'expire-deferred',
  'expired-of-account',
  'restart-expiry',
  'waiting-deliveries',
  'oldest-due',
  'overdue-deliveries',
  'lanes-with-deferred',
];

/** Statements in the same files that read other tables. */
const OUTSIDE_THE_LOG = [
  'clear-pending-limit-cursor',
  'read-pending-limit-cursor',
  'store-pending-limit-cursor',
  'account-of-lane',
  'expected-events',
  'undispatched-among',
  'cancel-recovery',
  'undispatched-events',
  'update-full-lanes',
  'store-recovery-progress',
  'running-recoveries',
  'running-recovery',
  'update-subscription-statuses',
];

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let pool: Pool;
const opened: AccessedPartitions[] = [];
const restricted: RestrictedStatement[] = [];
let one: Lane;
let other: Lane;

/** A subscription of a separate account. */
interface Lane {
  accountId: number;
  subscriptionId: string;
  leaf: number;
  newEvent(): JobRunEvent;
}

async function newLane(): Promise<Lane> {
  const account = await seedAccount(database);
  const { id: subscriptionId } = await seedSubscription(database, {
    accountId: account.id,
    clientUrl: 'http://127.0.0.1:9',
  });
  const newEvent = () => exampleEvent('job.run.started', account.jobs[0] as never);
  return {
    accountId: account.id,
    subscriptionId,
    leaf: await readLeafIndex(database.pool, account.id),
    newEvent,
  };
}

beforeAll(async () => {
  testDatabase = await createSubpartitionedDatabase();
  database = openPrismaDatabase({
    url: testDatabase.url,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
  });
  pool = createExplainingPool(
    database.pool,
    (partitions) => void opened.push(partitions),
    (statement) => void restricted.push(statement),
  );
  one = await newLane();
  do other = await newLane();
  while (other.leaf === one.leaf);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

const rowsOf = ({ subscriptionId, newEvent }: Lane, isDeferred = false): EventCommit => {
  const event = newEvent();
  const id = deliveryIdFor(event.eventId, subscriptionId);
  return { event, version: null, deliveries: [{ id, subscriptionId, webhookName: 'x', isDeferred }] };
};
const keyOf = ({ event, deliveries }: EventCommit) => ({
  deliveryId: deliveries[0]?.id ?? '',
  accountId: event.accountId,
});

/** Creates one event for each account, committed as the dispatcher does. */
async function commit({ isDeferred = false, isRecorded = false } = {}): Promise<[EventCommit, EventCommit]> {
  const rows: [EventCommit, EventCommit] = [
    { ...rowsOf(one, isDeferred), isRecorded },
    { ...rowsOf(other, isDeferred), isRecorded },
  ];
  if (isRecorded) for (const { event } of rows) await insertUndispatched(database, event);
  await commitResults(pool, rows);
  return rows;
}

async function versionOf({ accountId }: Lane): Promise<string> {
  const { rows } = await database.pool.query('SELECT version FROM accounts WHERE id = $1', [accountId]);
  return rows[0].version;
}

const attemptOf = (row: EventCommit) => ({
  ...keyOf(row),
  day: idDay('event', row.event.eventId),
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
  add: async () => {},
  requeue: async () => {},
  requeueLanes: async () => {},
  findQueued: async () => new Set<string>(),
  findActiveLanes: async () => new Set<string>(),
  wakeLanes: async () => {},
};
const retryPolicy = { retriesMax: 5, baseDelayMs: 20 };

async function runHotStatements(): Promise<void> {
  const planned = [
    { event: one.newEvent(), version: await versionOf(one) },
    { event: other.newEvent(), version: await versionOf(other) },
  ];
  await loadEventStates(pool, planned);
  await commitResults(pool, [{ event: other.newEvent(), version: null, deliveries: [] }]);
  await commitResults(pool, [{ ...rowsOf(one), version: await versionOf(one), isPartial: true }]);
  const [first, second] = await commit();
  await loadDeliveries(pool, [keyOf(first), keyOf(second)]);
  await loadAccountId(pool, { ...keyOf(first), cycle: 0 });
  await loadPendingDeliveries(pool, first.event, 60_000);
  await loadDeferredKeys(pool, { ...one, limit: 10 });
  await deferDeliveries(pool, [keyOf(first), keyOf(second)]);
  await hasDeferred(pool, one);
  await claimDeferred(pool, { ...one, limit: 10, permitsMax: 1_000, attemptMs: 60_000 });
  await recordAttempts(pool, [attemptOf(first), attemptOf(second)]);
  const [third, fourth] = await commit({ isRecorded: true });
  const reason = 'x';
  await cancelDeliveries(
    pool,
    [third, fourth].map((row) => ({ ...keyOf(row), reason })),
  );
  for (const lane of [one, other]) await insertUndispatched(database, lane.newEvent());
  const grace = { graceMs: 0, eventGraceMs: 0 };
  const quarantine = testQuarantine(pool);
  await reconcile({ pool, events: queue, deliveries: queue, retryPolicy, quarantine, ...grace });
  await commit({ isDeferred: true });
  await limitPending({ pool, pendingMax: 100 });
  const [fifth, sixth] = await commit({ isDeferred: true });
  await runStatementsOfOrder(fifth, sixth);
  await database.pool.query(
    `UPDATE deliveries SET deferred_at = now() - interval '25 hours' WHERE deferred_at IS NOT NULL`,
  );
  await database.pool.query('UPDATE subscriptions SET ordered = true');
  await reconcileLanes({ pool, deliveries: queue, quarantine });
  await database.pool.query(
    `INSERT INTO recoveries (id, subscription_id, status, since, until, delivery_status, total_count)
     VALUES ($1, $2, 'running', now() - interval '3 hours', now(), 'failed', 1)`,
    [createId('recovery'), one.subscriptionId],
  );
  await database.pool.query(
    `INSERT INTO recoveries (id, subscription_id, status, since, until, include, total_count)
     VALUES ($1, $2, 'running', now() - interval '3 hours', now(), 'all', 1)`,
    [createId('recovery'), other.subscriptionId],
  );
  await recover({ pool, deliveries: queue, retryPolicy, quarantine }, (error) => {
    throw error;
  });
}

async function runStatementsOfOrder(first: EventCommit, second: EventCommit): Promise<void> {
  const runIds = [first.event.data.runId];
  await loadRunDeliveries(pool, one, runIds);
  const unrecorded = ['424242'];
  await loadUndispatchedOfRuns(pool, { ...one, withoutStarted: unrecorded, withoutErrored: unrecorded });
  await markOutOfOrder(pool, [keyOf(first), keyOf(second)]);
  const rows: [Lane, EventCommit][] = [
    [one, first],
    [other, second],
  ];
  for (const [{ accountId, subscriptionId }, row] of rows) {
    const { eventId, eventType, data } = row.event;
    const waiting = [{ ...keyOf(row), subscriptionId, waitsForEventId: eventId }];
    const lane = { accountId, subscriptionId };
    await holdDeliveries(pool, lane, [{ ...keyOf(row), predecessor: { eventId, eventType } }]);
    await withEndedPredecessor(pool, waiting);
    await releaseWaiting(pool, waiting);
    await releaseSuccessors(pool, [{ ...lane, eventId, runId: data.runId }]);
  }
}

describe('on a log that is partitioned by account', () => {
  beforeAll(runHotStatements);

  test.each(Object.entries(HOT_STATEMENTS))(
    '%s opens the partition of each account that it names, and no other',
    (name, parts) => {
      const runs = opened.filter(({ statement }) => statement === name);
      expect(new Set(runs.map(({ execution }) => execution))).toEqual(new Set(['first', 'later']));
      const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
      for (const { partitions } of runs) {
        for (const table of ['events', 'deliveries'] as const) {
          const [ofOne, ofOther] = [one, other].map(({ leaf }) => `${table}_${today}_${leaf}`);
          const read = partitions.filter((leaf) => leaf.startsWith(`${table}_${today}`));
          const expected = { 0: [[]], 1: [[ofOne], [ofOther]], 2: [[ofOne, ofOther].sort()] }[
            parts[table] ?? 0
          ];
          expect({ name, among: expected }).toEqual({ name, among: expect.arrayContaining([read]) });
        }
        const ofOthers = partitions.filter((leaf) => {
          const isOfThem = leaf.endsWith(`_${one.leaf}`) || leaf.endsWith(`_${other.leaf}`);
          return !(isOfThem && (parts.anyDay || leaf.includes(today)));
        });
        expect({ name, ofOthers }).toEqual({ name, ofOthers: [] });
      }
    },
  );

  test('Citus accepts every statement that the dispatcher runs here', () => {
    expect(restricted).toEqual([]);
  });

  test('Citus accepts the statements on the steps of runs', async () => {
    const rejected: RestrictedStatement[] = [];
    const explaining = createExplainingPool(
      database.pool,
      () => undefined,
      (statement) => void rejected.push(statement),
    );
    const [step] = parseRunSteps([{ index: 1, name: 'Load', status: 10, logs: 'Done' }]).steps ?? [];
    const { accountId } = one;
    const target = { accountId, runId: 1, accountBytesMax: 1_000 };
    // Two passes, so that the steps are inserted and replaced.
    for (let pass = 0; pass < 2; pass += 1)
      await saveRunSteps(explaining as never, target, await compressRunSteps([step as RunStep]));
    await deleteRunSteps(explaining, [
      { accountId: String(accountId), runId: '1' },
      { accountId: String(other.accountId), runId: '1' },
    ]);
    expect(rejected).toEqual([]);
    const usage = await database.prisma.runStepsUsage.findMany();
    expect(usage).toEqual([{ accountId: BigInt(accountId), bytes: 0n }]);
  });

  test('every statement of the dispatcher on the log names its accounts, or is listed as one over all accounts', () => {
    const listed = new Set([...Object.keys(HOT_STATEMENTS), ...ALL_ACCOUNTS]);
    const source = new URL('../../src/', import.meta.url);
    const run = new Set(opened.map(({ statement }) => statement));
    expect([...run].filter((name) => !listed.has(name))).toEqual([]);
    const named = new Set<string>();
    const paths = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => new URL(path, source));
    for (const path of [...paths, SHARED_STATEMENTS]) {
      const text = readFileSync(path, 'utf8');
      if (!/\b(FROM|UPDATE|INTO|JOIN) (events|deliveries|attempts)\b/.test(text)) continue;
      for (const [, name = ''] of text.matchAll(/(?:[\])\w],|\? )\s+'([a-z]+(?:-[a-z]+)+)',?\s*[)\]]/g))
        named.add(name);
    }
    expect([...named].sort()).toEqual([...listed, ...OUTSIDE_THE_LOG].sort());
  });
});
