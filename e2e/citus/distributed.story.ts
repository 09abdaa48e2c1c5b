import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createServiceToken, dropOldDayPartitions } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { findRedisServer, startPostgres, startRedis } from '@runhook/embedded';
import { createEventPublisher, type EventPublisher } from '@runhook/publisher';
import {
  type CitusCluster,
  createTestDatabase,
  eventually,
  exampleEvent,
  prepareTemplate,
  type Receiver,
  seedAccount,
  seedSubscription,
  startCitusCluster,
  startReceiver,
  type TestAccount,
} from '@runhook/testing';
import { reportFigure } from '../proof-figures.ts';
import { type RunningService, startService } from '../services.ts';

/** Folder of a PostgreSQL with Citus, set by `npm run prove -- citus`. */
const BIN = process.env.CITUS_BIN ?? '';
const ACCOUNTS = 12;
const LOAD_MS = 20_000;
const WORKER_DOWN_MS = 6_000;
const RECOVERY_TIMEOUT_MS = 180_000;

interface World {
  database: PrismaDatabase;
  management: RunningService;
  receiver: Receiver;
  publisher: EventPublisher;
  accounts: (TestAccount & { token: string; subscriptionId: string })[];
}

const closers: (() => Promise<unknown>)[] = [];
let folder: string;
let queueUrl: string | null = null;

beforeEach(openSpreadServers);

/** Opens a folder and a separate queue. */
async function openSpreadServers(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'runhook-spread-'));
  await chmod(folder, 0o711);
  closers.push(() => rm(folder, { recursive: true, force: true }));
  queueUrl = null;
  if (findRedisServer() === null) return;
  const redis = await startRedis({ dataDir: join(folder, 'redis'), appendOnly: true });
  closers.push(() => redis.stop());
  queueUrl = redis.url;
}

afterEach(closeAll);

async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

/** @param urls the coordinator's first; only one for plain PostgreSQL */
async function openWorld(urls: readonly string[], dispatchers: number): Promise<World> {
  process.env.TEST_POSTGRES_URL = urls[0];
  process.env.TEST_WORKER_URLS = urls.slice(1).join();
  await prepareTemplate(urls[0] ?? '');
  const { url } = await createTestDatabase();
  const database = openPrismaDatabase({ url, onConnectionError: () => undefined });
  closers.push(() => database.close());
  const environment = { DATABASE_URL: url, QUEUE_URL: queueUrl ?? url, RETRY_BASE_DELAY_MS: '150' };
  const receiver = await startReceiver();
  closers.push(() => receiver.close());
  const accounts: World['accounts'] = [];
  for (let count = 0; count < ACCOUNTS; count += 1) {
    const account = await seedAccount(database);
    const permissionSets = ['account_admin'] as const;
    const token = { accountId: account.id, name: 'spread', permissionSets: [...permissionSets] };
    const clientUrl = `${receiver.url}/${account.id}`;
    const { id: subscriptionId } = await seedSubscription(database, { accountId: account.id, clientUrl });
    const created = await createServiceToken(database.prisma, token);
    accounts.push({ ...account, token: created.token, subscriptionId });
  }
  const publisher = createEventPublisher({ queueUrl: environment.QUEUE_URL });
  closers.push(() => publisher.close());
  const [management, ...others] = await Promise.all([
    startService('management', environment),
    ...Array.from({ length: dispatchers }, () => startService('dispatcher', environment)),
  ]);
  closers.push(() => Promise.all([management, ...others].map((service) => service.stop())));
  return { database, management, receiver, publisher, accounts };
}

async function startDistributedServers(): Promise<CitusCluster> {
  const servers = await startCitusCluster(BIN, folder, { 'citus.shard_count': '8' });
  closers.push(() => servers.close());
  return servers;
}

async function call(world: World, account: World['accounts'][number], path: string, body?: object) {
  const response = await fetch(`${world.management.url}/api${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Token ${account.token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a response as a client parses it
  const json: any = await response.json();
  return { status: response.status, json };
}

/** Returns the number of arrivals of each event. */
function arrivals({ receiver }: World): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { body } of receiver.requests) {
    const { eventType, accountId, data } = JSON.parse(body.toString());
    const key = `${accountId}/${data.runId}/${eventType}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

test('every accepted event is delivered although a worker of Citus is killed under load', async () => {
  const servers = await startDistributedServers();
  const world = await openWorld(servers.urls, 2);
  // Every tenth request fails, so that there are retries, too.
  world.receiver.respondWith((_, index) => (index % 10 === 9 ? { status: 503 } : {}));
  const accepted = new Set<string>();
  const calls: Promise<unknown>[] = [];
  let rejectedCount = 0;
  const recordAccepted = async (key: string, work: () => Promise<boolean>) => {
    if (await work().catch(() => false)) accepted.add(key);
    else rejectedCount += 1;
  };
  const report = (run: number) => {
    const account = world.accounts[run % ACCOUNTS] as World['accounts'][number];
    const job = account.jobs[0] as TestAccount['jobs'][number];
    const key = (type: string) => `${account.id}/${run}/job.run.${type}`;
    if (run % 3 === 0)
      return recordAccepted(key('started'), async () => {
        await world.publisher.publish(exampleEvent('job.run.started', job, run));
        return true;
      });
    const body = { job_id: job.id, run_id: run, engine_version: '1.9.2' };
    const path = `/v2/accounts/${account.id}/runs/`;
    return recordAccepted(
      key('started'),
      async () => (await call(world, account, path, body)).status === 201,
    );
  };
  const readers = world.accounts.slice(0, 3).map((account) => startReader(world, account));
  const beganMs = performance.now();
  let killing: Promise<void> | null = null;
  for (let run = 1; performance.now() - beganMs < LOAD_MS; run += 1) {
    calls.push(report(run));
    if (killing === null && performance.now() - beganMs > LOAD_MS / 4)
      killing = servers.killWorker().then(async () => {
        await wait(WORKER_DOWN_MS);
        await servers.startWorker();
      });
    await wait(40);
  }
  await Promise.all([...calls, killing]);
  const missingNow = () => [...accepted].filter((key) => !arrivals(world).has(key));
  await eventually(async () => expect(missingNow()).toEqual([]), {
    timeoutMs: RECOVERY_TIMEOUT_MS,
    intervalMs: 500,
  });
  await eventually(
    async () => {
      const { rows } = await world.database.pool.query(
        `SELECT status, count(*)::int AS count FROM deliveries GROUP BY 1`,
      );
      expect(rows).toEqual([{ status: 'delivered', count: expect.any(Number) }]);
      expect(rows[0].count).toBeGreaterThanOrEqual(accepted.size);
    },
    { timeoutMs: RECOVERY_TIMEOUT_MS, intervalMs: 500 },
  );
  const consumed = new Set<string>();
  await eventually(
    () => {
      for (const { keys } of readers) for (const key of keys) consumed.add(key);
      const ids = readers.map(({ account }) => `${account.id}/`);
      const unread = [...accepted].filter(
        (key) => ids.some((id) => key.startsWith(id)) && !consumed.has(key),
      );
      expect(unread).toEqual([]);
    },
    { timeoutMs: RECOVERY_TIMEOUT_MS, intervalMs: 500 },
  );
  for (const reader of readers) await reader.end();
  const { rows } = await world.database.pool.query('SELECT sum(attempt_count)::int AS made FROM deliveries');
  const arrived = world.receiver.requests.length;
  const ledger =
    `ledger: ${accepted.size} accepted, ${rejectedCount} rejected, ${missingNow().length} missing, ${arrived} requests, ` +
    `${arrived - rows[0].made} of them without an attempt in the log`;
  process.stderr.write(`${ledger}\n`);
  reportFigure('citus story', ledger);

  await checkRetention(world);
  world.receiver.respondWith(200);
  await checkRedelivery(world);
}, 600_000);

/** Follows the feed of an account, from which no page may leave out an event that a worker commits late. */
function startReader(world: World, account: World['accounts'][number]) {
  const keys = new Set<string>();
  const path = `/v3/accounts/${account.id}/webhooks/subscription/${account.subscriptionId}/events`;
  let isEnded = false;
  const read = async () => {
    for (let after = ''; !isEnded; ) {
      const page = await call(world, account, `${path}?after=${after}&limit=100&wait=1`).catch(() => null);
      if (page?.status !== 200) {
        await wait(200);
        continue;
      }
      for (const { eventType, data } of page.json.data) keys.add(`${account.id}/${data.runId}/${eventType}`);
      after = page.json.extra.pagination.next_after;
    }
  };
  const reading = read();
  const end = async () => {
    isEnded = true;
    await reading;
  };
  return { account, keys, end };
}

/** Reads the log of three accounts, and redelivers a delivery of each. */
async function checkRedelivery(world: World): Promise<void> {
  for (const account of world.accounts.slice(0, 3)) {
    const webhook = `/v3/accounts/${account.id}/webhooks/subscription/${account.subscriptionId}`;
    const { json } = await call(world, account, `${webhook}/deliveries`);
    expect(json.extra.pagination.total_count).toBeGreaterThan(0);
    const [first] = json.data;
    const before = world.receiver.requests.length;
    const { status } = await call(world, account, `${webhook}/delivery/${first.id}/redeliver`, {});
    expect(status).toBe(202);
    await world.receiver.waitFor(before + 1);
    await eventually(async () => {
      const { status, attempts } = (await call(world, account, `${webhook}/delivery/${first.id}`)).json.data;
      expect(status).toBe('delivered');
      // The manual attempt succeeds, whatever attempts precede it.
      expect(attempts.slice(first.attempt_count)).toEqual([
        expect.objectContaining({ trigger: 'manual', error: null }),
      ]);
    });
  }
}

/** Drops a day of the log on every worker. */
async function checkRetention({ database }: World): Promise<void> {
  const day = new Date(Date.now() - 60 * 86_400_000).toISOString().slice(0, 10);
  const make = async (parent: string) =>
    await database.pool.query('SELECT make_day_partition($1, $2::date)', [parent, day]);
  // A prepared transaction of the killed worker locks its tables until Citus has ended it, within a minute.
  for (const parent of ['events', 'deliveries', 'attempts'])
    await eventually(() => make(parent), { timeoutMs: RECOVERY_TIMEOUT_MS, intervalMs: 500 });
  expect(await dropOldDayPartitions(database.pool, 30)).toEqual({ changed: 3, waiting: [] });
}

const RATE_EVENTS = 2_000;

async function measureRate(world: World): Promise<{ perSecond: number }> {
  const { publisher, accounts, receiver, database } = world;
  const beganMs = performance.now();
  const events = Array.from({ length: RATE_EVENTS }, (_, index) => {
    const account = accounts[index % ACCOUNTS] as World['accounts'][number];
    return exampleEvent('job.run.started', account.jobs[0] as TestAccount['jobs'][number], index + 1);
  });
  await Promise.all(events.map((event) => publisher.publish(event)));
  await receiver.waitFor(RATE_EVENTS, { timeoutMs: 300_000 });
  await eventually(
    async () => {
      const { rows } = await database.pool.query(
        `SELECT count(*)::int AS count FROM deliveries WHERE status = 'delivered'`,
      );
      expect(rows).toEqual([{ count: RATE_EVENTS }]);
    },
    { timeoutMs: RECOVERY_TIMEOUT_MS },
  );
  return { perSecond: RATE_EVENTS / ((performance.now() - beganMs) / 1_000) };
}

test('events are published, delivered and recorded on Citus and on plain PostgreSQL, and both rates are reported', async () => {
  const plain = await startPostgres({
    dataDir: join(folder, 'plain'),
    internals: { binaries: { folder: join(BIN, '..'), version: 'given' } },
  });
  closers.push(() => plain.stop());
  const plainRate = await measureRate(await openWorld([plain.url], 1));
  await closeAll();
  await openSpreadServers();
  const citusRate = await measureRate(await openWorld((await startDistributedServers()).urls, 1));
  const line = (name: string, { perSecond }: { perSecond: number }) =>
    `${name}: ${perSecond.toFixed(0)} events/s published, delivered and recorded`;
  for (const text of [line('plain PostgreSQL', plainRate), line('coordinator and two workers', citusRate)]) {
    process.stderr.write(`${text}\n`);
    reportFigure('citus story', text);
  }
}, 900_000);
