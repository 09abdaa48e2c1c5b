import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { findRedisServer, type RunningRedis, startRedis } from '@runhook/embedded';
import { createTestQueueUrl, queueBackends, removeTestQueues } from '../src/index.ts';
import { connectRedis, type Reply } from '../src/queue-backends.ts';

const POSTGRES_URL = 'postgres://127.0.0.1/database';

test('on PostgreSQL the queue is in the database of the test', async () => {
  expect(await createTestQueueUrl({ name: 'PostgreSQL' }, POSTGRES_URL)).toBe(POSTGRES_URL);
});

const describeWithRedis = findRedisServer() === null ? describe.skip : describe;

describeWithRedis('on Redis', () => {
  const environment = process.env.TEST_REDIS_URL;
  let folder: string;
  let redis: RunningRedis;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runhook-queues-'));
    redis = await startRedis({ dataDir: folder, databases: 5 });
    process.env.TEST_REDIS_URL = redis.url;
  });

  afterEach(async () => {
    if (environment === undefined) delete process.env.TEST_REDIS_URL;
    else process.env.TEST_REDIS_URL = environment;
    await redis.stop();
    await rm(folder, { recursive: true });
  });

  test('Redis is a back end only if TEST_REDIS_URL is set', () => {
    expect(queueBackends()).toEqual([{ name: 'PostgreSQL' }, { name: 'Redis' }]);
    delete process.env.TEST_REDIS_URL;
    expect(queueBackends()).toEqual([{ name: 'PostgreSQL' }]);
  });

  test('each test has a separate logical database, which is emptied of earlier keys', async () => {
    const first = await Promise.all([queueUrl(), queueUrl(), queueUrl(), queueUrl()]);
    expect(new Set(first).size).toBe(4);
    await sendCommand(first[0] as string, 'SET', 'job', 'left over');
    const reused = await Promise.all([queueUrl(), queueUrl(), queueUrl(), queueUrl()]);
    expect(new Set(reused)).toEqual(new Set(first));
    expect(await sendCommand(first[0] as string, 'EXISTS', 'job')).toBe(0);
  });

  test('a database with keys of other programs is never emptied', async () => {
    await sendCommand(`${redis.url}/2`, 'SET', 'treasure', 'mine');
    const urls = [await queueUrl(), await queueUrl(), await queueUrl(), await queueUrl(), await queueUrl()];
    expect(urls).not.toContain(`${redis.url}/2`);
    await removeTestQueues(redis.url);
    expect(await sendCommand(redis.url, 'INFO', 'keyspace')).toMatch(/^# Keyspace\r\ndb2:keys=1,\S*\r\n$/);
  });
});

function queueUrl(): Promise<string> {
  return createTestQueueUrl({ name: 'Redis' }, POSTGRES_URL);
}

async function sendCommand(url: string, ...command: string[]): Promise<Reply> {
  const connection = await connectRedis(url);
  await connection.send('SELECT', new URL(url).pathname.slice(1) || '0');
  const reply = await connection.send(...command);
  connection.close();
  return reply;
}
