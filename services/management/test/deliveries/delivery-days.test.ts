import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Database, openDatabase, type Pool } from '@runhook/database';
import { createTestDatabase, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { listDeliveries } from '../../src/deliveries/log-statements.ts';
import type { DeliveryFilters } from '../../src/deliveries/page-locator.ts';

const DAY_MS = 86_400_000;
const NO_FILTERS: DeliveryFilters = { status: null, eventType: null, runId: null, since: null, until: null };

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase({ hasDayPartitions: false });
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  await database.pool.query(
    `SELECT ensure_day_partitions((now() AT TIME ZONE 'UTC')::date - 40, (now() AT TIME ZONE 'UTC')::date + 1)`,
  );
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

/** Returns the partitions of `deliveries` that the statement of the list reads. */
async function partitionsRead(filters: Partial<DeliveryFilters>): Promise<string[]> {
  let plan = '';
  const explaining = {
    query: async ({ text, values }: { text: string; values: unknown[] }) => {
      const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(
        `EXPLAIN (ANALYZE) ${text}`,
        values,
      );
      plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      return { rows: [] };
    },
  } as unknown as Pool;
  const query = {
    accountId: 1,
    subscriptionId: 'wsu_x',
    filters: { ...NO_FILTERS, ...filters },
    limit: 10,
    offset: 0,
  };
  await listDeliveries(
    explaining,
    { getCached: () => null, getOrCount: async () => null, recordRead: () => undefined, isLong: () => false },
    query,
  );
  return [...new Set(plan.match(/on deliveries_\d{8}/g) ?? [])].map((match) => match.slice(-8)).sort();
}

const dayName = (daysAgo: number) =>
  new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '');
const micros = (daysAgo: number) => String(BigInt(Date.now() - daysAgo * DAY_MS) * 1000n);

test('a list of deliveries since yesterday reads only the days since then and one more on each side', async () => {
  expect(await partitionsRead({ since: micros(1) })).toEqual([
    dayName(2),
    dayName(1),
    dayName(0),
    dayName(-1),
  ]);
});

test('a list of deliveries of a window reads only its days and one more on each side', async () => {
  expect(await partitionsRead({ since: micros(11), until: micros(10) })).toEqual(
    [12, 11, 10, 9].map(dayName),
  );
});

test('a list of deliveries without a window reads every day including tomorrow', async () => {
  const days = await partitionsRead({});
  expect(days.length).toBeGreaterThan(30);
  expect(days.at(-1)).toBe(dayName(-1));
});
