import { afterEach, expect, test } from '@jest/globals';
import { verify } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher } from '@runhook/publisher';
import {
  countDispatchedEvents,
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  queueBackends,
  type ReceivedRequest,
  seedAccount,
  seedSubscription,
  startReceiver,
  type TestSubscription,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { Webhook } from 'standardwebhooks';
import { startServiceInProcess } from './services-in-process.ts';

/** Number of deliveries; `ROTATION_DELIVERIES=10000` for the full test (docs/contract.md#rotating-a-secret). */
const DELIVERIES = Number(process.env.ROTATION_DELIVERIES ?? 600);
const RECEIVERS = 3;
/** Size of a burst: before the rotation, during it, at its end, and afterwards, and all of that twice. */
const CHUNK = Math.ceil(DELIVERIES / RECEIVERS / 8);
const OVERLAP_LEFT_MS = 1_000;

/** The secrets of a receiver, and the time until which it accepts only a signature of the old one in `Authorization`. */
interface SecretState {
  old: string;
  next: string | null;
  switchesAtMs: number;
}

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function isVerified(secret: string, { headers, body }: ReceivedRequest): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

/** Maps each kind of receiver to its check of a delivery. */
const KINDS: Record<string, (secrets: SecretState, request: ReceivedRequest) => boolean> = {
  '/authorization': ({ old, next, switchesAtMs }, { headers, body, receivedAt }) =>
    verify(body, old, headers.authorization) ||
    (next !== null && receivedAt >= switchesAtMs && verify(body, next, headers.authorization)),
  '/library-that-waits': ({ old, next, switchesAtMs }, request) =>
    isVerified(next !== null && request.receivedAt >= switchesAtMs ? next : old, request),
  '/library-that-is-early': ({ old, next }, request) =>
    isVerified(old, request) || (next !== null && isVerified(next, request)),
};

interface World {
  database: PrismaDatabase;
  publish(count: number): Promise<void>;
  rotate(id: string, rest: string): Promise<string>;
  /** Descriptions of requests that a receiver rejected. */
  rejected: string[];
  arrivedCount(): number;
  publishedCount(): number;
  secrets: Map<string, SecretState>;
  subscriptions: Map<string, TestSubscription>;
}

async function openWorld(): Promise<World> {
  const backend = queueBackends().at(-1) ?? { name: 'PostgreSQL' };
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const queueUrl = await createTestQueueUrl(backend, testDatabase.url);
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  closers.push(() => database.close());
  const account = await seedAccount(database);
  const rejected: string[] = [];
  const secrets = new Map<string, SecretState>();
  const receiver = await startReceiver({
    respond(request) {
      const { path, headers } = request;
      if (KINDS[path]?.(secrets.get(path) as SecretState, request)) return { status: 204 };
      rejected.push(
        `${path} at ${request.receivedAt}: ${headers.authorization}, ${headers['webhook-signature']}`,
      );
      return { status: 401 };
    },
  });
  closers.push(() => receiver.close());
  const subscriptions = new Map<string, TestSubscription>();
  for (const path of Object.keys(KINDS)) {
    const clientUrl = receiver.url + path;
    const subscription = await seedSubscription(database, { accountId: account.id, clientUrl });
    subscriptions.set(path, subscription);
    secrets.set(path, { old: subscription.hmacSecret, next: null, switchesAtMs: Number.POSITIVE_INFINITY });
  }
  const token = { accountId: account.id, name: 'e2e', permissionSets: ['account_admin' as const] };
  const authorization = `Token ${(await createServiceToken(database.prisma, token)).token}`;
  const environment = { DATABASE_URL: testDatabase.url, QUEUE_URL: queueUrl };
  const services = await Promise.all([
    startServiceInProcess('management', environment),
    startServiceInProcess('dispatcher', environment),
    startServiceInProcess('dispatcher', environment),
  ]);
  closers.push(() => Promise.all(services.map((service) => service.stop())));
  const publisher = createEventPublisher({ queueUrl });
  closers.push(() => publisher.close());
  const job = account.jobs[0] as never;
  let published = 0;
  return {
    database,
    rejected,
    secrets,
    subscriptions,
    arrivedCount: () => receiver.requests.length,
    publishedCount: () => published,
    async publish(count) {
      const events = Array.from({ length: count }, (_, run) => exampleEvent('job.run.started', job, run + 1));
      await publisher.publishMany(events);
      published += count;
    },
    async rotate(id, rest) {
      const path = `/api/v3/accounts/${account.id}/webhooks/subscription/${id}/${rest}`;
      const response = await fetch(services[0].url + path, { method: 'POST', headers: { authorization } });
      expect(response.status).toBe(200);
      return ((await response.json()) as { data: { hmac_secret: string } }).data.hmac_secret;
    },
  };
}

/** Rotates the secret of each subscription once under continuous load. `end` resolves with the time at which the new secrets apply. */
async function rotateUnderLoad(world: World, end: () => Promise<number>): Promise<number> {
  const { secrets, subscriptions, database } = world;
  const arrivedBefore = world.arrivedCount();
  let published = 0;
  const publish = async () => {
    await world.publish(CHUNK);
    published += CHUNK;
  };
  await publish();
  for (const [path, { id }] of subscriptions) {
    const before = secrets.get(path) as SecretState;
    const old = before.next ?? before.old;
    const next = await world.rotate(id, 'rotate-secret');
    secrets.set(path, { old, next, switchesAtMs: Number.POSITIVE_INFINITY });
  }
  // An overlap must be longer than the delay of deliveries that were signed with one secret only.
  const signedBefore = published * RECEIVERS;
  await eventually(() => expect(world.arrivedCount() - arrivedBefore).toBeGreaterThanOrEqual(signedBefore));
  const publishing = publish();
  const switchesAtMs = await end();
  await publishing;
  do await publish();
  while (Date.now() < switchesAtMs);
  await publish();
  await eventually(async () => {
    expect(await countDispatchedEvents(database)).toBe(world.publishedCount());
    expect(await database.prisma.delivery.count({ where: { status: 'pending' } })).toBe(0);
  });
  return published;
}

test(`receivers reject none of ${DELIVERIES} or more deliveries while their secrets are rotated under load`, async () => {
  const world = await openWorld();
  const { secrets, subscriptions, database } = world;
  const waitForSwitch = (switchesAtMs: number) => {
    for (const [path, before] of secrets) secrets.set(path, { ...before, switchesAtMs });
    return switchesAtMs;
  };
  const rotatedByTime = await rotateUnderLoad(world, async () => {
    // The API sets hours; the end of the overlap is the same after a second.
    const { rows } = await database.pool.query(
      `WITH ending AS (SELECT now() + $1::int * interval '1 millisecond' AS at)
       UPDATE subscriptions SET rotation_ends_at = ending.at FROM ending RETURNING rotation_ends_at_micros / 1000.0 AS ms`,
      [OVERLAP_LEFT_MS],
    );
    return waitForSwitch(Number(rows[0].ms));
  });
  const rotatedByUser = await rotateUnderLoad(world, async () => {
    // The calls take effect before their response.
    const switchesAtMs = waitForSwitch(Date.now());
    for (const { id } of subscriptions.values()) await world.rotate(id, 'finish-rotation');
    return switchesAtMs;
  });
  const deliveries = await database.prisma.delivery.groupBy({ by: ['status'], _count: true });
  const { rows: attempts } = await database.pool.query('SELECT count(*)::int AS count FROM logged_attempts');
  const deliveredCount = (rotatedByTime + rotatedByUser) * RECEIVERS;
  expect(world.rejected).toEqual([]);
  expect(deliveries).toEqual([{ status: 'delivered', _count: deliveredCount }]);
  expect(attempts).toEqual([{ count: deliveredCount }]);
  expect(deliveredCount).toBeGreaterThanOrEqual(DELIVERIES);
}, 600_000);
