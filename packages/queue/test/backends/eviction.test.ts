import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS, shardOf, shardPrefix } from '@runhook/contract';
import { findRedisServer } from '@runhook/embedded';
import { createTestDatabase, EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import { openRedisConnection } from '../../src/backends/redis/connection.ts';
import {
  createQueueBackend,
  openDeliveryQueue,
  openEventQueue,
  openQueueAdmin,
  openShardAdmin,
  requireNoEviction,
} from '../../src/index.ts';
import { type RedisProcess, send, startCluster, startServer, TEST_TIMEOUT_MS } from './redis-servers.ts';

function open(queueUrl: string) {
  return openDeliveryQueue(createQueueBackend(queueUrl, { callMs: 60_000 }), () => undefined);
}

/** Slots of the first of three masters that share 16,384. */
const SLOTS_OF_FIRST = 5_461;

(findRedisServer() === null ? describe.skip : describe)('a queue on Redis', () => {
  let folder: string;
  let server: RedisProcess;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runhook-eviction-'));
    const conf = (port: number) => [`port ${port}`, 'save ""', 'maxmemory-policy noeviction'];
    server = await startServer({ folder, name: 'evicting', conf });
  });

  afterEach(async () => {
    await server.kill();
    await rm(folder, { recursive: true, force: true });
  });

  test('reports a policy that may evict jobs until the policy is changed', async () => {
    const queueUrl = `redis://127.0.0.1:${server.port}`;
    const queue = open(queueUrl);
    const redis = await openRedisConnection(queueUrl, () => undefined, 60_000);
    try {
      await requireNoEviction(queue);
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      await expect(requireNoEviction(queue)).rejects.toMatchObject({
        code: 'QUEUE_EVICTS',
        publicMessage: expect.stringMatching(/maxmemory-policy allkeys-lru .* set it to noeviction\.$/),
      });
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
      await requireNoEviction(queue);
    } finally {
      redis.disconnect();
      await queue.close();
    }
  });
});

(findRedisServer() === null ? describe.skip : describe)('shards on the servers of a cluster', () => {
  let folder: string;
  let servers: RedisProcess[];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runhook-eviction-'));
    servers = await startCluster(folder);
  });

  afterEach(async () => {
    for (const server of servers) await server.kill();
    await rm(folder, { recursive: true, force: true });
  });

  test(
    'reject events while their own server is nearly full, and report a server that may evict jobs',
    async () => {
      const [full] = servers as [RedisProcess];
      const backend = createQueueBackend(
        `redis+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
        { callMs: 60_000 },
      );
      const shards = openShardAdmin(backend, () => undefined);
      const events = openEventQueue(backend, () => undefined);
      const deliveries = openDeliveryQueue(backend, () => undefined);
      const shardAdmin = openQueueAdmin(backend, () => undefined);
      try {
        const map = await shards.spread(8);
        const memory = String(await send(full.port, ['INFO', 'memory']));
        const used = Number(/^used_memory:(\d+)/m.exec(memory)?.[1]);
        await send(full.port, ['CONFIG', 'SET', 'maxmemory', String(Math.ceil(used / 0.9))]);
        const outcomes: Record<string, string> = {};
        const expected: typeof outcomes = {};
        for (let accountId = 1; Object.keys(outcomes).length < 8; accountId += 1) {
          const shard = shardOf(map, accountId);
          if (outcomes[shard] !== undefined) continue;
          const event = exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: accountId });
          outcomes[shard] = await events.add([event]).then(
            () => 'taken',
            (error: Error) => error.constructor.name,
          );
          const key = `${shardPrefix(shard)}:${JOB_RUN_EVENTS}:wait`;
          const slot = Number(await send(full.port, ['CLUSTER', 'KEYSLOT', key]));
          expected[shard] = slot < SLOTS_OF_FIRST ? 'QueueFullError' : 'taken';
        }
        expect(outcomes).toEqual(expected);
        expect(new Set(Object.values(outcomes)).size).toBe(2);
        expect((await shardAdmin.stats()).usedShare).toBeGreaterThan(0.85);

        await requireNoEviction(deliveries);
        await send(full.port, ['CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru']);
        await expect(requireNoEviction(deliveries)).rejects.toMatchObject({ code: 'QUEUE_EVICTS' });
      } finally {
        for (const opened of [shardAdmin, deliveries, events, shards]) await opened.close();
      }
    },
    TEST_TIMEOUT_MS,
  );
});

test('requireNoEviction() accepts a queue in PostgreSQL', async () => {
  const database = await createTestDatabase();
  const queue = open(database.url);
  await requireNoEviction(queue);
  await queue.close();
  await database.drop();
});
