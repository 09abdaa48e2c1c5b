import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { createTestDatabase } from '@runhook/testing';
import { openRedisBeside } from '../../src/backends/redis/connection.ts';
import { createQueueBackend, openDeliveryQueue, requireKeeping } from '../../src/index.ts';
import { type RedisProcess, startServer } from './redis-servers.ts';

function open(queueUrl: string) {
  return openDeliveryQueue(createQueueBackend(queueUrl, { callMs: 60_000 }), () => undefined);
}

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

  test('whose server may drop jobs says so in words, until its policy is changed', async () => {
    const queueUrl = `redis://127.0.0.1:${server.port}`;
    const queue = open(queueUrl);
    const redis = await openRedisBeside(queueUrl, () => undefined, 60_000);
    try {
      await requireKeeping(queue);
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      await expect(requireKeeping(queue)).rejects.toMatchObject({
        code: 'QUEUE_EVICTS',
        told: expect.stringMatching(/maxmemory-policy allkeys-lru .* set it to noeviction\.$/),
      });
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
      await requireKeeping(queue);
    } finally {
      redis.disconnect();
      await queue.close();
    }
  });
});

test('a queue in PostgreSQL keeps what it has', async () => {
  const database = await createTestDatabase();
  const queue = open(database.url);
  await requireKeeping(queue);
  await queue.close();
  await database.drop();
});
