import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { idDay } from '@runhook/contract';
import { openDatabase, type Pool, type Queryable, type Statement } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  eventually,
  seedAccount,
  seedDeliveries,
  seedSubscription,
  type TestDatabase,
  vacuumLog,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { readAccountLog } from '../../src/deliveries/account-log.ts';
import type { AccountLogFilters } from '../../src/deliveries/account-log-conditions.ts';
import { deliveryView, findDelivery } from '../../src/deliveries/delivery.ts';
import { createHourlyCounts, type HourlyCounts } from '../../src/deliveries/hourly-counts.ts';
import { listDeliveries, READ_COUNT_MAX } from '../../src/deliveries/log-statements.ts';
import type { DeliveryFilters } from '../../src/deliveries/page-locator.ts';

const COUNT = 3_000;
/** Number of deliveries that is a small part of the log. */
const FEW = COUNT / 24;
/** The oldest day of the log may have fewer deliveries than this. */
const SMALL_DAY = COUNT / 10;
const NO_FILTERS: DeliveryFilters = { status: null, eventType: null, runId: null, since: null, until: null };
const ALL_OF_ACCOUNT: AccountLogFilters = {
  ...NO_FILTERS,
  ...{ eventId: null, subscriptionIds: null, jobId: null, status: null },
  ...{ httpStatusCode: null, errorCode: null, durationMinMs: null, durationMaxMs: null },
};
const DELIVERED: DeliveryFilters = { ...NO_FILTERS, status: 'delivered' };

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let accountId: number;
let subscriptionId: string;
/** `cachedCounts` has the counts of the log by hour; `noCounts` has none. */
let cachedCounts: HourlyCounts;
const noCounts: HourlyCounts = {
  getCached: () => null,
  getOrCount: async () => null,
  recordRead: () => undefined,
  isLong: () => false,
};

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  ({ id: accountId } = await seedAccount(database));
  const clientUrl = 'https://receiver.example.com/hooks';
  ({ id: subscriptionId } = await seedSubscription(database, { accountId, clientUrl }));
  await seedDeliveries(database.pool, {
    accountId,
    subscriptionId,
    count: COUNT,
    days: 3,
    isAnalysed: false,
  });
  cachedCounts = createHourlyCounts(database.pool, { slowMs: Number.POSITIVE_INFINITY, deliveriesMin: 1 });
  cachedCounts.recordRead({ accountId, subscriptionId }, { isLong: true, durationMs: 0 });
  await eventually(async () =>
    expect(cachedCounts.getCached({ accountId, subscriptionId })?.counts.length).toBeGreaterThan(48),
  );
});

afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

function watch(target: Queryable): { statements: Statement[]; watchedPool: Queryable } {
  const statements: Statement[] = [];
  const watchedPool: Queryable = {
    query(statement) {
      statements.push(statement);
      return target.query(statement);
    },
  };
  return { statements, watchedPool };
}

interface Scan {
  table: string;
  type: string;
  /** Name of the index. */
  name: string;
  /** Rows read in all loops. */
  rows: number;
  /** Whether this reads all rows of a day with fewer than {@link SMALL_DAY}, in order or by the index of the account. */
  isOfSmallDay: boolean;
}

/** Returns the scans of a statement by the plan for its values. */
async function scansOf(statement: Statement | undefined): Promise<Scan[]> {
  if (statement === undefined) throw new Error('nothing was asked');
  const { pool, close } = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  try {
    await pool.query(`PREPARE explained AS ${statement.text}`);
    const literal = (value: unknown) => (Array.isArray(value) ? `'{${value.join()}}'` : `'${value}'`);
    const values = statement.values.map(literal).join(', ');
    const { rows } = await pool.query(
      `EXPLAIN (ANALYZE, COSTS off, TIMING off, FORMAT JSON) EXECUTE explained (${values})`,
    );
    const scans: Scan[] = [];
    collectScans(rows[0]['QUERY PLAN'][0].Plan, scans);
    return scans;
  } finally {
    await close();
  }
}

/** Returns the scans of both statements of a page: the one for its keys, and the one that reads its rows by them. */
async function scansOfPage(statements: readonly Statement[]): Promise<Scan[]> {
  expect(statements.at(-1)?.text).toContain('AS k (day, id)');
  return [...(await scansOf(statements.at(-2))), ...(await scansOf(statements.at(-1)))];
}

const rowsOf = (scans: readonly Scan[]) =>
  scans.reduce((sum, { rows, isOfSmallDay }) => sum + (isOfSmallDay ? 0 : rows), 0);

function collectScans(node: PlanNode, scans: Scan[]): void {
  const {
    'Relation Name': table,
    'Actual Loops': loops,
    'Actual Rows': rows,
    'Rows Removed by Filter': removed = 0,
  } = node;
  if (table !== undefined && loops > 0 && !table.endsWith('_default')) {
    const type = node['Node Type'];
    const name = indexOf(node);
    const readsAllRows = type === 'Seq Scan' || name.endsWith('_account_id_created_at_idx');
    const isOfSmallDay = readsAllRows && rows + removed < SMALL_DAY;
    scans.push({ table, type, name, rows: (rows + removed) * loops, isOfSmallDay });
  }
  for (const child of node.Plans ?? []) collectScans(child, scans);
}

/** The index of a bitmap scan is in a child node. */
function indexOf(node: PlanNode): string {
  return node['Index Name'] ?? (node.Plans ?? []).map(indexOf).join();
}

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Loops': number;
  'Actual Rows': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

async function list(hours: HourlyCounts, filters: Partial<DeliveryFilters>, offset: number, limit = 7) {
  const query = { accountId, subscriptionId, filters: { ...NO_FILTERS, ...filters }, limit, offset };
  const { rows, totalCount } = await listDeliveries(database.pool, hours, query);
  return { rows: rows.map(deliveryView), totalCount };
}

/** Returns a time within the log, as digits. @param share of its three days */
function timestampAt(share: number): string {
  const micros = (Date.now() - (1 - share) * 3 * 86_400_000) * 1_000;
  return String(Math.floor(micros));
}

function hourStart(micros: string): string {
  return String(BigInt(micros) - (BigInt(micros) % 3_600_000_000n));
}

// A log has no statistics in the first minutes of a day. The tests below these use a log with statistics.
describe.each([false, true])('a read of a log, with planner statistics: %j', (isAnalysed) => {
  beforeAll(async () => {
    if (isAnalysed) await vacuumLog(database.pool);
  });

  test.each<[string, Partial<DeliveryFilters>, number]>([
    ['the newest page', {}, 0],
    ['a page in the middle', {}, COUNT / 2],
    ['the oldest page', {}, COUNT - 7],
    ['a filtered page', { status: 'delivered', eventType: 'job.run.completed' }, COUNT / 4],
  ])('opens only the days of %s once the hours of the log are cached', async (_, filters, offset) => {
    const query = { accountId, subscriptionId, filters: { ...NO_FILTERS, ...filters }, limit: 7, offset };
    const { statements, watchedPool } = watch(database.pool);
    const { rows } = await listDeliveries(watchedPool, cachedCounts, query);
    const scans = await scansOfPage(statements);
    const days = new Set(rows.map(({ id }) => idDay('delivery', id).replaceAll('-', '')));
    expect(new Set(scans.map(({ table }) => table.slice(-8)))).toEqual(days);
    expect(rowsOf(scans)).toBeLessThan(FEW);
  });

  test('reads a small part of the log for a page across midnight', async () => {
    const { rows: days } = await database.pool.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM deliveries GROUP BY day ORDER BY day DESC LIMIT 2',
    );
    const offset = days.reduce((sum, { count }) => sum + count, 0) - 3;
    const query = { accountId, subscriptionId, filters: NO_FILTERS, limit: 7, offset };
    const { statements, watchedPool } = watch(database.pool);
    const { rows } = await listDeliveries(watchedPool, cachedCounts, query);
    expect(new Set(rows.map(({ id }) => idDay('delivery', id))).size).toBe(2);
    const scans = await scansOfPage(statements);
    expect(rowsOf(scans)).toBeLessThan(FEW);
  });

  test('finds one delivery and its event by their keys', async () => {
    const { rows } = await list(noCounts, {}, 0, 1);
    const key = { accountId, subscriptionId, id: rows[0]?.id ?? '' };
    const { statements, watchedPool } = watch(database.pool);
    expect(await findDelivery(watchedPool as Pool, key)).toMatchObject({
      id: key.id,
      event_data: expect.anything(),
    });
    const scans = await scansOf(statements[0]);
    expect(rowsOf(scans)).toBeLessThanOrEqual(2);
  });

  test('finds the deliveries of a run by the index of runs and reads each row by its key', async () => {
    const webhooks = new Map([[subscriptionId, { id: subscriptionId, name: 'x', state: 'active' as const }]]);
    const filters = { ...ALL_OF_ACCOUNT, runId: 7 };
    const { statements, watchedPool } = watch(database.pool);
    const page = await readAccountLog(watchedPool, { accountId, webhooks, filters, cursor: null, limit: 7 });
    expect(page.rows).toHaveLength(2);
    const scans = await scansOfPage(statements);
    expect(rowsOf(scans)).toBeLessThanOrEqual(3 * page.rows.length);
  });

  test('finds failed deliveries by their own index and reads each row by its key', async () => {
    const filters = { ...NO_FILTERS, status: 'failed' as const };
    const { statements, watchedPool } = watch(database.pool);
    const { rows } = await listDeliveries(watchedPool, noCounts, {
      ...{ accountId, subscriptionId, filters },
      ...{ limit: 7, offset: 0 },
    });
    expect(rows).toHaveLength(3);
    const indexes = await database.pool.query<{ name: string }>(
      `SELECT indexrelid::regclass::text AS name FROM pg_index
       WHERE pg_get_indexdef(indexrelid) LIKE '%(subscription_id, day, created_at, id, account_id, status) WHERE%'`,
    );
    const scans = await scansOfPage(statements);
    const byKey = scans.filter(({ name }) => name.endsWith('_pkey'));
    // A scan of the day may read a few rows with either index.
    expect(rowsOf(byKey)).toBeLessThan(FEW);
    for (const scan of scans.filter((one) => !byKey.includes(one) && !one.isOfSmallDay))
      expect(indexes.rows).toContainEqual({ name: scan.name });
  });
});

describe('a page found by cached hours equals the page found by a complete read', () => {
  test.each<[string, Partial<DeliveryFilters>]>([
    ['of all deliveries', {}],
    ['of an event type', { eventType: 'job.run.completed' }],
    ['of an event type without deliveries', { eventType: 'job.run.errored' }],
    ['with status delivered', { status: 'delivered' }],
    ['with status delivered, of an event type', { status: 'delivered', eventType: 'job.run.started' }],
    ['since a time within an hour', { since: timestampAt(0.3) }],
    ['until a time within an hour', { until: timestampAt(0.7) }],
    ['between two times', { since: timestampAt(0.2), until: timestampAt(0.6), status: 'delivered' }],
    ['between two whole hours', { since: hourStart(timestampAt(0.2)), until: hourStart(timestampAt(0.6)) }],
    ['within one hour', { since: timestampAt(0.5), until: String(BigInt(timestampAt(0.5)) + 600_000_000n) }],
    ['since half a minute ago', { since: timestampAt(0.9999) }],
    ['since a future time', { since: timestampAt(1.5) }],
    ['before the first delivery', { until: timestampAt(-0.5) }],
  ])('for the list %s', async (_, filters) => {
    const fullList = await list(noCounts, filters, 0, COUNT);
    expect(fullList.rows).toHaveLength(fullList.totalCount);
    const offsets = [0, 60, 61, 1_499, COUNT - 5, COUNT, fullList.totalCount - 3, fullList.totalCount / 2];
    for (const offset of offsets.filter((one) => one >= 0).map(Math.floor)) {
      const page = await list(cachedCounts, filters, offset);
      expect({ offset, total: page.totalCount }).toEqual({ offset, total: fullList.totalCount });
      expect(page.rows).toEqual(fullList.rows.slice(offset, offset + 7));
    }
  });
});

test('a delivery created after the hours were counted is on the first page at once', async () => {
  const { rows, totalCount } = await list(cachedCounts, {}, 0);
  await database.pool.query(
    `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name)
     SELECT day, left(id, 30) || 'x', account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name
     FROM deliveries WHERE id = $1`,
    [rows[0]?.id],
  );
  const listAfterCount = await list(cachedCounts, {}, 0);
  expect(listAfterCount.totalCount).toBe(totalCount + 1);
  expect(listAfterCount.rows.slice(1)).toEqual(rows.slice(0, -1));
  await database.pool.query('DELETE FROM deliveries WHERE id = $1', [listAfterCount.rows[0]?.id]);
});

test('the hourly counts of a short log are never cached, however slow the server is', async () => {
  let counted = 0;
  const watchedPool = {
    async query(statement: string) {
      const result = await database.pool.query(statement);
      counted += 1;
      return result;
    },
  } as unknown as PrismaDatabase['pool'];
  const hours = createHourlyCounts(watchedPool, { slowMs: -1, deliveriesMin: COUNT + 1 });
  hours.recordRead({ accountId, subscriptionId }, { isLong: false, durationMs: 1_000 });
  await eventually(() => expect(counted).toBe(1));
  expect(hours.getCached({ accountId, subscriptionId })).toBeNull();
  expect((await list(hours, {}, COUNT - 1)).rows).toHaveLength(1);
});

test('nothing is counted or cached for a webhook that does not exist', async () => {
  const target: string[] = [];
  const hours: HourlyCounts = {
    ...noCounts,
    getOrCount: async () => {
      target.push('counted');
      return null;
    },
    recordRead: () => void target.push('read'),
  };
  for (const offset of [0, READ_COUNT_MAX]) {
    const existenceCheck = Promise.reject(new Error('not there'));
    const query = { accountId, subscriptionId, filters: NO_FILTERS, limit: 7, offset };
    const calls = Promise.all([existenceCheck, listDeliveries(database.pool, hours, query, existenceCheck)]);
    await expect(calls).rejects.toThrow('not there');
    await expect(listDeliveries(database.pool, hours, query, existenceCheck)).rejects.toThrow('not there');
  }
  expect(target).toEqual([]);
});

test('the seeded log has the form that the service writes', async () => {
  const { rows } = await database.pool.query<{ status: string; count: number }>(
    'SELECT status, count(*)::int FROM deliveries GROUP BY status ORDER BY status',
  );
  expect(rows).toEqual([
    { status: 'cancelled', count: 1 },
    { status: 'delivered', count: COUNT - 4 },
    { status: 'failed', count: 3 },
  ]);
  const ids = await database.pool.query<{ id: string; event_id: string; day: string }>(
    'SELECT id, event_id, day::text FROM deliveries ORDER BY created_at LIMIT 500',
  );
  for (const { id, event_id, day } of ids.rows)
    expect([idDay('delivery', id), idDay('event', event_id)]).toEqual([day, day]);
});

test('the total of a long log is limited at first, and complete once its hours are counted', async () => {
  const count = READ_COUNT_MAX + 500;
  const { id } = await seedSubscription(database, {
    accountId,
    clientUrl: 'https://receiver.example.com/long',
  });
  await seedDeliveries(database.pool, { accountId, subscriptionId: id, count, days: 2 });
  // A distant page waits for the count that it starts.
  const fresh = createHourlyCounts(database.pool);
  const key = { accountId, subscriptionId: id };
  const oldest = { ...key, filters: NO_FILTERS, limit: 7, offset: count - 7 };
  expect((await listDeliveries(database.pool, fresh, oldest)).totalCount).toBe(count);
  expect(fresh.getCached(key)).not.toBeNull();
  const hours = createHourlyCounts(database.pool);
  const newest = { ...key, filters: NO_FILTERS, limit: 7, offset: 0 };
  const firstPage = await listDeliveries(database.pool, hours, newest);
  expect(firstPage.totalCount).toBe(READ_COUNT_MAX);
  const beyond = { ...newest, offset: count - 7 };
  expect(await listDeliveries(database.pool, noCounts, beyond)).toMatchObject({ totalCount: count });
  await eventually(() => expect(hours.getCached(key)).not.toBeNull());
  const { statements, watchedPool } = watch(database.pool);
  // The count never ends, so that the first page finds that the log is long, and the next pages do not count it.
  const hangingCounts = createHourlyCounts({ query: () => new Promise(() => {}) });
  for (const offset of [0, 0, 10])
    expect(await listDeliveries(watchedPool, hangingCounts, { ...newest, offset })).toMatchObject({
      totalCount: READ_COUNT_MAX,
    });
  const typed = { ...newest, filters: { ...NO_FILTERS, eventType: 'job.run.completed' } };
  expect((await listDeliveries(watchedPool, hangingCounts, typed)).totalCount).toBe(count / 2);
  expect(
    (await listDeliveries(watchedPool, hangingCounts, { ...newest, filters: DELIVERED })).totalCount,
  ).toBe(READ_COUNT_MAX);
  // Whether each page was counted; the other statements read the rows.
  expect(
    statements.filter((_, index) => index % 2 === 0).map(({ text }) => text.includes('total_count')),
  ).toEqual([true, false, false, true, true]);
  const second = await listDeliveries(database.pool, hours, newest);
  expect(second.totalCount).toBe(count);
  expect(second.rows.map(deliveryView)).toEqual(firstPage.rows.map(deliveryView));
});

test('a distant page of a log that is still being counted is a 503 and available after the count', async () => {
  const { statements, watchedPool } = watch(database.pool);
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow: Queryable = { query: (statement) => released.then(() => database.pool.query(statement)) };
  const hours = createHourlyCounts(slow, { waitMaxMs: 1 });
  const key = { accountId, subscriptionId };
  const deepPage = { ...key, filters: NO_FILTERS, limit: 7, offset: READ_COUNT_MAX };
  for (let call = 0; call < 2; call++)
    await expect(listDeliveries(watchedPool, hours, deepPage)).rejects.toMatchObject({ statusCode: 503 });
  expect(statements).toEqual([]);
  release();
  await eventually(() => expect(hours.getCached(key)).not.toBeNull());
  expect(await listDeliveries(watchedPool, hours, deepPage)).toMatchObject({ totalCount: COUNT, rows: [] });
});
