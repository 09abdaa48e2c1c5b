import { setTimeout as wait } from 'node:timers/promises';
import { createServiceToken } from '@runhook/database';
import { seedAccount, seedDeliveries, seedSubscriptions } from '@runhook/testing';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { spreadOf } from '../measure/timing.ts';

const STORED_DELIVERIES = 10_000_000;
const STORED_DELIVERIES_QUICK = 20_000;
const LOG_DAYS = 30;
const SUBSCRIPTIONS = 10_000;
const SUBSCRIPTIONS_QUICK = 500;
const RETRY_MS = 500;
/** Timeout for counting the log, which takes longer than the statements of the service may. */
const COUNT_TIMEOUT_MS = 60_000;
/** Pages of a log with `count` deliveries, and of the list of webhooks. */
const createPages = (count: number, webhooks: number) => [
  { name: 'log, newest', path: 'deliveries', query: 'limit=20' },
  { name: 'log, in the middle', path: 'deliveries', query: `limit=20&offset=${Math.floor(count / 2)}` },
  { name: 'log, the oldest', path: 'deliveries', query: `limit=20&offset=${count - 20}` },
  { name: 'log, failed only', path: 'deliveries', query: 'limit=20&status=failed' },
  { name: 'log, of one event type', path: 'deliveries', query: 'limit=20&event_type=job.run.completed' },
  { name: 'last 24 hours', path: 'statistics', query: 'hours=24' },
  { name: 'webhooks, newest', path: null, query: 'limit=25' },
  { name: 'webhooks, the oldest', path: null, query: `limit=25&offset=${webhooks - 25}` },
  { name: 'webhooks, searched', path: null, query: 'limit=25&search=receiver-77' },
];

/** Measures pages of a long log and of many webhooks, as the console requests them. */
export async function list(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('redis', {
    management: true,
    environment: { API_RATE_LIMIT_PER_MINUTE: '10000000' },
  });
  try {
    const account = await seedAccount(world.database);
    const webhooks = bench.isQuick ? SUBSCRIPTIONS_QUICK : SUBSCRIPTIONS;
    const { pool } = world.database;
    const [id = ''] = await seedSubscriptions(pool, { accountId: account.id, count: webhooks });
    const count = bench.stored ?? (bench.isQuick ? STORED_DELIVERIES_QUICK : STORED_DELIVERIES);
    const formattedCount = count.toLocaleString('en-GB');
    bench.progress(`storing ${formattedCount} deliveries`);
    await seedDeliveries(pool, { accountId: account.id, subscriptionId: id, count, days: LOG_DAYS });
    const { token } = await createServiceToken(world.database.prisma, {
      accountId: account.id,
      name: 'bench',
      permissionSets: ['account_admin'],
    });
    const rows: Row[] = [];
    for (const { name, path, query } of createPages(count, webhooks)) {
      const resource = path === null ? 'subscriptions' : `subscription/${id}/${path}`;
      const url = `${world.management?.url}/api/v3/accounts/${account.id}/webhooks/${resource}?${query}`;
      rows.push(await measureCase(bench, name, () => measurePage(url, token, bench.runMs / 4)));
    }
    const notes = [
      `${formattedCount} deliveries of one webhook over ${LOG_DAYS} days, ${webhooks.toLocaleString('en-GB')} webhooks.`,
    ];
    return { name: 'list', rows, notes };
  } finally {
    await world.close();
  }
}

/**
 * Requests one page repeatedly, and measures from the first response that is no 503: management responds with 503 to a
 * page near the end of a log until it has counted the log.
 */
async function measurePage(url: string, token: string, durationMs: number): Promise<Measured> {
  const latenciesMs: number[] = [];
  const headers = { authorization: `Token ${token}` };
  const startMs = performance.now();
  while (true) {
    const response = await fetch(url, { headers });
    await response.arrayBuffer();
    if (response.status !== 503) break;
    if (performance.now() - startMs > COUNT_TIMEOUT_MS) throw new Error(`${url} still responds with 503`);
    await wait(RETRY_MS);
  }
  for (const endMs = performance.now() + durationMs; performance.now() < endMs; ) {
    const beganMs = performance.now();
    const response = await fetch(url, { headers });
    const { data } = (await response.json()) as { data: unknown };
    if (!response.ok || (Array.isArray(data) && data.length === 0))
      throw new Error(`${url} responded with ${response.status}`);
    latenciesMs.push(performance.now() - beganMs);
  }
  const { p50, p99 } = spreadOf(latenciesMs);
  const calls = latenciesMs.length;
  return {
    figures: {
      p50Ms: p50,
      p99Ms: p99,
      maxMs: Math.max(...latenciesMs),
      pagesPerSecond: (calls * 1_000) / durationMs,
    },
    balance: {
      published: 0,
      delivered: 0,
      explained: 0,
      repeated: 0,
      missing: 0,
      unknown: 0,
      latenciesMs: Float64Array.from(latenciesMs),
    },
  };
}
