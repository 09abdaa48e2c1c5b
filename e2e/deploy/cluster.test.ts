import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { findRedisServer } from '@runhook/embedded';
import { createEventPublisher } from '@runhook/publisher';
import {
  createTestDatabase,
  eventually,
  exampleEvent,
  seedAccount,
  seedSubscription,
  startReceiver,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { startCluster } from '../../packages/queue/test/backends/redis-servers.ts';
import { startServiceInProcess } from '../services-in-process.ts';

const EVENTS = 60;
const REQUESTS_PER_MINUTE = 3;
/** Ends a test that hangs, because six servers start here. */
const TEST_TIMEOUT_MS = 300_000;

const closers: (() => Promise<unknown>)[] = [];
let queueUrl: string;

const describeWithRedis = findRedisServer() === null ? describe.skip : describe;

describeWithRedis('on a Redis Cluster', () => {
  beforeEach(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'runhook-cluster-'));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const nodes = await startCluster(folder);
    closers.push(() => Promise.all(nodes.map((node) => node.kill())));
    queueUrl = `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
  }, TEST_TIMEOUT_MS);
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  test(
    'two dispatchers deliver each event once, and two management processes share the rate limit',
    async () => {
      const testDatabase = await createTestDatabase();
      closers.push(() => testDatabase.drop());
      const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
      closers.push(() => database.close());
      const account = await seedAccount(database);
      const receiver = await startReceiver();
      closers.push(() => receiver.close());
      await seedSubscription(database, { accountId: account.id, clientUrl: receiver.url });
      const { token } = await createServiceToken(database.prisma, {
        accountId: account.id,
        name: 'cluster',
        permissionSets: ['member'],
      });

      const environment = {
        DATABASE_URL: testDatabase.url,
        QUEUE_URL: queueUrl,
        API_RATE_LIMIT_PER_MINUTE: String(REQUESTS_PER_MINUTE),
      };
      const names = ['management', 'management', 'dispatcher', 'dispatcher'] as const;
      const services = await Promise.all(names.map((name) => startServiceInProcess(name, environment)));
      closers.push(() => Promise.all(services.map((service) => service.stop())));

      const publisher = createEventPublisher({ queueUrl });
      closers.push(() => publisher.close());
      const [job] = account.jobs;
      const events = Array.from({ length: EVENTS }, (_, index) =>
        exampleEvent('job.run.started', job as never, index + 1),
      );
      await publisher.publishMany(events);
      await eventually(() => expect(receiver.requests.length).toBeGreaterThanOrEqual(EVENTS), {
        timeoutMs: TEST_TIMEOUT_MS,
      });
      const received = receiver.requests.map(({ headers }) => headers['webhook-id']).sort();
      expect(received).toEqual(events.map(({ eventId }) => eventId).sort());

      const statuses: number[] = [];
      for (let call = 0; call <= REQUESTS_PER_MINUTE; call += 1) {
        const { url } = services[call % 2] as (typeof services)[number];
        const response = await fetch(`${url}/api/v3/accounts/${account.id}/webhooks/subscriptions`, {
          headers: { authorization: `Token ${token}` },
        });
        statuses.push(response.status);
      }
      expect(statuses).toEqual([200, 200, 200, 429]);
    },
    TEST_TIMEOUT_MS,
  );
});
