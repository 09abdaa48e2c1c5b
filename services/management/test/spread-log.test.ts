import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createId, type JobRunEvent, sampleEvent } from '@runhook/contract';
import { inTransaction, type Pool } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  type AccessedPartitions,
  createExplainingPool,
  createSubpartitionedDatabase,
  type RestrictedStatement,
  readLeafIndex,
  seedAccount,
  seedSubscription,
  type TestDatabase,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { accountLogEndpoints } from '../src/deliveries/account-log-routes.ts';
import { insertRecovery } from '../src/deliveries/begin-recovery.ts';
import { countDeliveries, countEvents } from '../src/deliveries/count-recovery.ts';
import { type DeliveryKey, findDelivery, listAttempts } from '../src/deliveries/delivery.ts';
import { countHours } from '../src/deliveries/hourly-counts.ts';
import { readEvidence } from '../src/deliveries/incident-evidence.ts';
import { cancelDelivery, findDeliveryKey } from '../src/deliveries/operator-actions.ts';
import { ratesEndpoint } from '../src/deliveries/rates.ts';
import { beginRedelivery } from '../src/deliveries/redeliver.ts';
import { deliveryEndpoints } from '../src/deliveries/routes.ts';
import { runEventsEndpoint } from '../src/deliveries/run-events.ts';
import { statisticsEndpoint } from '../src/deliveries/statistics.ts';
import { FEED_START } from '../src/feed/cursor.ts';
import { readFeedPage } from '../src/feed/page.ts';
import { FeedWaits } from '../src/feed/waits.ts';
import type { AccountEndpoint } from '../src/http/endpoint.ts';
import { ReplicaReads } from '../src/http/replica-reads.ts';
import { createPublishedEvents } from '../src/runs/published-events.ts';
import { recordRuns } from '../src/runs/report-statements.ts';
import { insertAttempt, insertDelivery } from './deliveries/delivery-rows.ts';

/*
 * The days of this log are partitioned by account, as on a distributed PostgreSQL. Statements of management on an event
 * or a delivery must open only the partition of the account (docs/scaling.md#a-record-that-can-be-spread).
 */

/** Files with statements on the path of a delivery, all of which are tested below. */
const EVENT_PATH_STATEMENTS = [
  'deliveries/begin-recovery.ts',
  'deliveries/operator-actions.ts',
  'deliveries/delivery.ts',
  'deliveries/redeliver.ts',
  'runs/published-events.ts',
  'runs/report-statements.ts',
];

/** Files that read pages and counts, of several days at a time. */
const READS_OF_THE_LOG = [
  'deliveries/account-counts.ts',
  'deliveries/account-log.ts',
  'deliveries/count-recovery.ts',
  'deliveries/histogram.ts',
  'deliveries/hourly-counts.ts',
  'deliveries/incident-evidence.ts',
  'deliveries/log-statements.ts',
  'deliveries/rates.ts',
  'deliveries/run-events.ts',
  'deliveries/statistics.ts',
  'deliveries/unnotified.ts',
  'feed/distributed-log.ts',
  'feed/page.ts',
  'feed/waits.ts',
  'subscriptions/changes.ts',
];

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let pool: Pool;
let openedLeaves: AccessedPartitions[] = [];
const restricted: RestrictedStatement[] = [];
let accountId: number;
let subscriptionId: string;
let leaf: number;

beforeAll(async () => {
  testDatabase = await createSubpartitionedDatabase();
  database = openPrismaDatabase({
    url: testDatabase.url,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
  });
  pool = createExplainingPool(
    database.pool,
    (partitions) => void openedLeaves.push(partitions),
    (statement) => void restricted.push(statement),
  );
  accountId = (await seedAccount(database)).id;
  leaf = await readLeafIndex(database.pool, accountId);
  subscriptionId = (await seedSubscription(database, { accountId, clientUrl: 'http://127.0.0.1:9' })).id;
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

async function newDelivery(status: string): Promise<DeliveryKey> {
  const { id, day } = await insertDelivery(database, { accountId, subscriptionId, status, attemptCount: 1 });
  await insertAttempt(database, { day, deliveryId: id, number: 1 });
  return { accountId, subscriptionId, id };
}

const newEvent = (): JobRunEvent =>
  sampleEvent('job.run.started', { accountId, eventId: createId('event'), now: new Date() });

const relay = { add: () => {} } as never;

async function publish(event: JobRunEvent): Promise<void> {
  const { publish } = createPublishedEvents({ pool, reportPool: pool, relay });
  const batch = { beforeCommit: () => {}, accept: (response: unknown) => response };
  const reporting = { accountId, version: null, recorder: { batch } } as never;
  await publish(reporting, [event], () => ({ code: 202, data: null }));
}

async function report(): Promise<void> {
  const { rows } = await database.pool.query('SELECT version FROM cache_version');
  const event = newEvent();
  const run = {
    id: 7,
    account_id: accountId,
    job_id: 1,
    job_name: 'x',
    project_id: 1,
    project_name: 'x',
    environment_id: 1,
    environment_name: 'x',
    engine_version: 'x',
    reason: null,
    started_at: '2026-01-31T19:28:07Z',
  };
  const write = { run, expected: null, version: rows[0].version, events: [event], traceContext: null };
  const { written } = await recordRuns(pool, [write as never], true);
  expect(written.size).toBe(1);
}

type Table = 'events' | 'deliveries' | 'attempts';

/** Cases, each with its name and the tables of which it opens a partition. */
const CASES: [name: string, tables: Table[], run: () => Promise<unknown>][] = [
  ['publishing an event', [], () => publish(newEvent())],
  ['reporting a run with its event', [], report],
  [
    'reading a delivery by its id',
    ['deliveries', 'events'],
    async () => findDelivery(pool, await newDelivery('failed')),
  ],
  [
    'reading the attempts of a delivery',
    ['attempts', 'deliveries'],
    async () => listAttempts(pool, await newDelivery('failed')),
  ],
  [
    'redelivering a delivery',
    ['deliveries'],
    async () => {
      const key = await newDelivery('failed');
      return inTransaction(pool, (transaction) => beginRedelivery(transaction, key));
    },
  ],
  ['cancelling a delivery', ['deliveries'], async () => cancelDelivery(pool, await newDelivery('pending'))],
];

const RUN_ID = '12345';

/** Returns the endpoint that reads pages or counts at a path. */
function endpoint(path: string): AccountEndpoint {
  const reads = new ReplicaReads(pool, null);
  const deps = { prisma: database.prisma, pool, reads, consoleUrl: null };
  const matchingEndpoint = [
    ...deliveryEndpoints(deps),
    ...accountLogEndpoints(deps),
    statisticsEndpoint(deps),
    ratesEndpoint(deps),
    runEventsEndpoint(deps),
  ].find((one) => one.method === 'GET' && one.path.endsWith(path));
  if (!matchingEndpoint) throw new Error(`nothing answers at ${path}`);
  return matchingEndpoint;
}

const requestEndpoint = (path: string, query: Record<string, string> = {}) =>
  endpoint(path).handle({
    account: { id: accountId },
    param: (name: string) => (name === 'run_id' ? RUN_ID : subscriptionId),
    query,
  } as never);

const RECOVERY_WINDOW = { since: '1700000000000000', until: '32503680000000000' };

/** Reads of old and current times, so that several days are read. */
const READS: [name: string, run: () => Promise<unknown>][] = [
  ['the deliveries of a webhook', () => requestEndpoint('/:webhook_id/deliveries')],
  ['failed deliveries of a webhook', () => requestEndpoint('/:webhook_id/deliveries', { status: 'failed' })],
  ['the deliveries of an account', () => requestEndpoint('/webhooks/deliveries')],
  ['failed deliveries of an account', () => requestEndpoint('/webhooks/deliveries', { status: 'failed' })],
  ['pending deliveries of an account', () => requestEndpoint('/webhooks/deliveries', { status: 'pending' })],
  ['the deliveries of a job', () => requestEndpoint('/webhooks/deliveries', { job_id: '12' })],
  ['the deliveries of a run', () => requestEndpoint('/webhooks/deliveries', { run_id: RUN_ID })],
  ['the deliveries of a histogram', () => requestEndpoint('/histogram')],
  ['the failed deliveries of a histogram', () => requestEndpoint('/histogram', { status: 'failed' })],
  ['the statistics of a webhook', () => requestEndpoint(`/:webhook_id/statistics`)],
  ['webhook rates', () => requestEndpoint('/webhooks/statistics', { subscription_id: subscriptionId })],
  ['the events of a run', () => requestEndpoint('/events')],
  [
    'the webhooks without deliveries of a run',
    async () => {
      await database.pool.query(
        `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name, status)
         VALUES ($1, $2, 1, 'x', 1, 'x', 1, 'x', 'Queued') ON CONFLICT DO NOTHING`,
        [accountId, RUN_ID],
      );
      return await requestEndpoint('/unnotified');
    },
  ],
  [
    'the deliveries of a webhook by hour',
    () =>
      countHours(pool, {
        ...{ accountId, subscriptionId, eventType: null, byEventType: true },
        ...{ status: 'not delivered', since: null, until: null },
      }),
  ],
  [
    'the deliveries of a recovery',
    () => countDeliveries(pool, { accountId, subscriptionId }, RECOVERY_WINDOW, 'failed'),
  ],
  [
    'the events of a recovery',
    () =>
      countEvents(pool, {
        ...{ accountId, subscriptionId, window: RECOVERY_WINDOW, include: 'all', resendDelivered: false },
        selection: { active: true, eventTypes: ['job.run.completed'], jobIds: new Set(), filters: null },
      }),
  ],
  [
    'the causes of the failures of a webhook',
    () => readEvidence(pool, accountId, [{ subscriptionId, since: '1700000000000000', until: null }]),
  ],
];

describe('on a log that is partitioned by account', () => {
  test.each(CASES)('%s opens only the partition of its account', async (_name, tables, run) => {
    openedLeaves = [];
    expect(await run()).not.toBeNull();
    expect(openedLeaves.map(({ execution }) => execution)).toEqual(['first', 'later']);
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
    const expected = tables.map((table) => `${table}_${today}_${leaf}`);
    for (const { partitions } of openedLeaves) expect(partitions).toEqual(expected);
  });

  test('inserting a recovery opens only the partition of its account in each day', async () => {
    openedLeaves = [];
    await newDelivery('failed');
    const transaction = {
      $queryRawUnsafe: async (text: string, ...values: unknown[]) =>
        (await pool.query({ text, values })).rows,
    };
    const since = '1700000000000000';
    const recovery = {
      id: createId('recovery'),
      accountId,
      subscriptionId,
      since,
      until: null,
      deliveryStatus: 'failed',
    };
    expect(await insertRecovery(transaction as never, recovery)).toBe(true);
    expect(openedLeaves).toHaveLength(2);
    for (const { partitions } of openedLeaves) {
      expect(partitions).not.toEqual([]);
      for (const name of partitions)
        expect(name).toMatch(new RegExp(`^deliveries_(\\d{8}_${leaf}|default)$`));
    }
  });

  test('a delivery that an operator names by its id alone is searched in its day only', async () => {
    const { id } = await newDelivery('failed');
    openedLeaves = [];
    expect(await findDeliveryKey(pool, id)).toEqual({ accountId, subscriptionId, id });
    for (const { partitions } of openedLeaves) expect(partitions).toHaveLength(4);
  });

  // These run last: a slow read starts a count in the background, whose statements would count in the next test.
  test.each(READS)('%s are read only from the partitions of the account', async (_name, run) => {
    await newDelivery('failed');
    openedLeaves = [];
    expect(await run()).toBeTruthy();
    expect(openedLeaves.length).toBeGreaterThan(1);
    for (const { partitions } of openedLeaves) {
      for (const name of partitions)
        expect(name).toMatch(new RegExp(`^(deliveries|events|attempts)_(\\d{8}_${leaf}|default)$`));
    }
    expect(
      openedLeaves.flatMap(({ partitions }) => partitions).some((name) => name.startsWith('deliveries_2')),
    ).toBe(true);
  });

  test('the feed is read only from the partitions of the account', async () => {
    await publish(newEvent());
    openedLeaves = [];
    const horizon = 2n ** 62n;
    const itemOf = () => ({ item: true, bytes: 1 });
    const page = await readFeedPage(pool, { accountId, from: FEED_START, horizon, limit: 1, itemOf });
    expect(page.items).toHaveLength(1);
    for (const { partitions } of openedLeaves) {
      for (const name of partitions) expect(name).toMatch(new RegExp(`^events_(\\d{8}_${leaf}|default)$`));
    }
    const state = { readHorizon: async () => horizon, settle: async () => undefined };
    const waits = new FeedWaits({ database: pool, state, pollIntervalMs: () => 1 });
    const { signal } = new AbortController();
    expect(
      await waits.wait({ accountId, from: FEED_START, matches: () => true }, WAIT_TIMEOUT_MS, signal),
    ).toBe(true);
  });

  test('Citus accepts every statement of the tests above', () => {
    expect(restricted).toEqual([]);
  });

  test('every file of management with statements on the log is in a list of this test', () => {
    const source = new URL('../src/', import.meta.url);
    const ofLog = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
      (path) =>
        path.endsWith('.ts') &&
        /\b(FROM|UPDATE|INTO|JOIN) (events|deliveries|attempts|logged_attempts)\b/.test(
          readFileSync(new URL(path, source), 'utf8'),
        ),
    );
    expect(ofLog.sort()).toEqual([...EVENT_PATH_STATEMENTS, ...READS_OF_THE_LOG].sort());
  });
});
