import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { HEADER_LIMITS, IdSet, OPTION_LIMITS, SUBSCRIPTION_LIMITS } from '@runhook/contract';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, seedAccount, seedSubscription, type TestDatabase } from '@runhook/testing';
import type { AccountSubscriptions, CachedSubscription } from '../../src/policy/next-step.ts';
import { loadAccountVersions, loadSubscriptions, SubscriptionCache } from '../../src/record/accounts.ts';

const SUBSCRIPTIONS = 200;
const MB = 1_024 * 1_024;

let testDatabase: TestDatabase;
let database: PrismaDatabase;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

describe('a cached account whose subscriptions name a thousand jobs each', () => {
  let accountId: number;
  let cache: SubscriptionCache;
  /** Ids of the subscriptions that the test has loaded. */
  let loaded: string[] = [];

  beforeEach(async () => {
    accountId = (await seedAccount(database)).id;
    const { id } = await seedSubscription(database, { accountId, clientUrl: 'https://a.example' });
    await database.pool.query(
      `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active,
                                  hmac_secret_ciphertext)
       SELECT 'wsu_' || s.account_id || '_' || n, s.account_id, s.name, '', s.event_types,
              (SELECT array_agg(n * 1000 + job ORDER BY job DESC) FROM generate_series(1, 1000) AS job),
              s.client_url, true, s.hmac_secret_ciphertext
       FROM subscriptions s, generate_series(2, $2) AS n WHERE s.id = $1`,
      [id, SUBSCRIPTIONS],
    );
    cache = new SubscriptionCache({
      loadVersions: async (id) => (await loadAccountVersions(database.pool, [id]))[0] ?? null,
      loadSubscription: async (id) => {
        loaded.push(id);
        return (await loadSubscriptions(database.pool, [id]))[0] ?? null;
      },
      bytesMax: 100 * MB,
    });
    await current();
    loaded = [];
  });

  const idOf = (n: number) => `wsu_${accountId}_${n}`;
  const update = (n: number, data: object) =>
    database.prisma.subscription.update({ where: { id: idOf(n) }, data });

  /** Returns the account that the next plan uses after a commit has found another version of it. */
  async function current(): Promise<AccountSubscriptions> {
    const cached = await cache.get(accountId);
    if (cached) cache.invalidate(cached);
    return (await cache.get(accountId)) as AccountSubscriptions;
  }
  const find = ({ subscriptions }: AccountSubscriptions, n: number) =>
    subscriptions.find(({ id }) => id === idOf(n));

  test('loads only the subscription that was changed', async () => {
    const before = await current();
    expect(before.subscriptions).toHaveLength(SUBSCRIPTIONS);
    await update(7, { clientUrl: 'https://b.example' });
    const after = await current();
    expect(loaded).toEqual([idOf(7)]);
    expect(after.version).not.toBe(before.version);
    expect(find(after, 7)?.target.clientUrl).toBe('https://b.example');
    expect(after.subscriptions.filter((one) => !before.subscriptions.includes(one))).toHaveLength(1);
    expect(after.subscriptions).toHaveLength(SUBSCRIPTIONS);
  });

  test('loads a subscription that is created, activated or marked as full', async () => {
    const { id } = await seedSubscription(database, { accountId, clientUrl: 'https://c.example' });
    await update(8, { active: false });
    await current();
    await update(8, { active: true });
    await update(9, { laneFullSince: new Date() });
    const after = await current();
    expect(loaded.sort()).toEqual([id, idOf(8), idOf(9)].sort());
    expect(find(after, 9)).toMatchObject({ isFull: true });
    expect(after.subscriptions).toHaveLength(SUBSCRIPTIONS + 1);
  });

  test('removes a subscription that is deactivated or deleted, and loads none', async () => {
    await update(10, { active: false });
    await update(11, { deletedAt: new Date() });
    await database.prisma.subscription.delete({ where: { id: idOf(12) } });
    const after = await current();
    expect(loaded).toEqual([]);
    expect([10, 11, 12].map((n) => find(after, n))).toEqual([undefined, undefined, undefined]);
    expect(after.subscriptions).toHaveLength(SUBSCRIPTIONS - 3);
  });

  test('keeps its version when the status of an attempt is stored', async () => {
    const { version } = await current();
    await update(13, { httpStatusCode: 200, dispatchedAt: new Date() });
    expect((await current()).version).toBe(version);
    expect(loaded).toEqual([]);
  });

  test('loads all subscriptions again when the plan changes, which is part of each target', async () => {
    await database.prisma.account.update({ where: { id: accountId }, data: { plan: 'team' } });
    const { subscriptions } = await current();
    expect(loaded).toHaveLength(SUBSCRIPTIONS);
    expect(new Set(subscriptions.map(({ target }) => target.plan))).toEqual(new Set(['team']));
  });

  test('finds the subscriptions that name a job, whatever the order of their jobs', async () => {
    const { subscriptions } = await current();
    const matching = (jobId: string) => subscriptions.filter(({ jobIds }) => jobIds.has(jobId));
    expect(matching('7001').map(({ id }) => id)).toEqual([idOf(7)]);
    expect(matching('8000').map(({ id }) => id)).toEqual([idOf(7)]);
    expect(matching('999999999')).toEqual([]);
    expect(subscriptions.filter(({ jobIds }) => jobIds.size === 0)).toHaveLength(1);
  });
});

// A column that raised only the version of the account would leave the cached subscription unchanged.
test('each column of a subscription that raises the version of the account also raises that of the subscription', async () => {
  const columnsOf = async (functionName: string) => {
    const { rows } = await database.pool.query<{ name: string }>(
      `SELECT DISTINCT a.attname AS name
       FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
       CROSS JOIN unnest(t.tgattr::int2[]) AS c (number) JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = c.number
       WHERE t.tgrelid = 'subscriptions'::regclass AND p.proname = $1 ORDER BY 1`,
      [functionName],
    );
    return rows.map(({ name }) => name);
  };
  const columns = await columnsOf('next_subscription_version');
  expect(columns).toEqual(await columnsOf('subscriptions_are_changed'));
  expect(columns).toContain('job_ids');
});

test('subscriptions as large as the contract allows take no more memory than the limit of the cache', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const textOf = (length: number) => Buffer.alloc(length, 'x').toString('latin1');
  const { headersMax, nameCharactersMax, valueCharactersMax } = HEADER_LIMITS;
  const headerBytes = headersMax * (nameCharactersMax + valueCharactersMax);
  const optionBytes = OPTION_LIMITS.formatOptionsMax * OPTION_LIMITS.formatOptionCharactersMax;
  const largest = (id: string): CachedSubscription => ({
    id,
    versionedId: `${id} 1`,
    name: 'ж'.repeat(SUBSCRIPTION_LIMITS.nameCharactersMax),
    eventTypes: ['job.run.started', 'job.run.errored', 'job.run.completed'],
    jobIds: IdSet.fromArrayText(
      `{${Array.from({ length: SUBSCRIPTION_LIMITS.jobIdsMax }, (_, n) => 2 ** 52 + n)}}`,
    ),
    filters: null,
    isFull: false,
    target: {
      clientUrl: textOf(SUBSCRIPTION_LIMITS.clientUrlCharactersMax),
      endpoint: textOf(SUBSCRIPTION_LIMITS.clientUrlCharactersMax),
      secret: { current: textOf(120), rotation: { next: textOf(120), endsAtMs: 1 } },
      signatureKey: { current: textOf(200), rotation: { next: textOf(200), endsAtMs: 1 } },
      signatureHeader: textOf(nameCharactersMax),
      headersCiphertext: textOf(Math.ceil((headerBytes * 4) / 3)),
      format: null,
      formatOptionsCiphertext: textOf(optionBytes),
      deactivateOn410: false,
      updatedAt: '1795168700000000',
      blockedUntilMs: 0,
      ordered: false,
      rateLimit: null,
      active: true,
      deleted: false,
      plan: 'team',
      deployment: 'multi_tenant',
    },
  });
  const ids = Array.from({ length: 100 }, (_, n) => `wsu_${String(n).padStart(27, '0')}`);
  const cache = new SubscriptionCache({
    loadVersions: async (accountId) => ({
      accountId,
      version: '1',
      plan: 'team',
      deployment: 'multi_tenant',
      subscriptionVersions: ids.map((id) => `${id} 1`),
    }),
    loadSubscription: async (id) => largest(id),
    bytesMax: 24 * MB,
  });
  /** V8 releases array buffers in another thread, so memory of earlier tests is released after several collections only. */
  const usedBytes = async () => {
    let leastBytes = Number.POSITIVE_INFINITY;
    for (let steady = 0; steady < 5; steady += 1) {
      collectGarbage();
      await new Promise((resolve) => setImmediate(resolve));
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      const bytes = heapUsed + arrayBuffers;
      if (bytes < leastBytes - MB / 10) steady = 0;
      leastBytes = Math.min(leastBytes, bytes);
    }
    return leastBytes;
  };
  const beforeBytes = await usedBytes();
  for (let accountId = 1; accountId <= 30; accountId += 1) await cache.get(accountId);
  const cachedBytes = (await usedBytes()) - beforeBytes;
  expect(cachedBytes).toBeGreaterThan(4 * MB);
  expect(cachedBytes).toBeLessThan(24 * MB);
  // Read after the measurement, so that the cache is alive in it.
  expect(await cache.get(30)).not.toBeNull();
});
