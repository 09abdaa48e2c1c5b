import { connectRedis, type RedisConnection } from './redis-connection.ts';

export interface QueueBackend {
  name: 'PostgreSQL' | 'Redis';
}

/** Marks a logical database as one that tests may empty. */
const MARK = 'runhook:test';
const NEXT = 'runhook:test:next';

/** What the queue can run on here, for `describe.each`: Redis only when TEST_REDIS_URL names one. */
export function queueBackends(): QueueBackend[] {
  const backends: QueueBackend[] = [{ name: 'PostgreSQL' }];
  if (process.env.TEST_REDIS_URL !== undefined) backends.push({ name: 'Redis' });
  return backends;
}

/**
 * A QUEUE_URL for one test. On PostgreSQL it is the test database's own; on Redis an empty logical database that no
 * other test has, as long as the numbers last (511 on the server `npm test` starts; a server with 16 hands a number out
 * again after 15). A database that holds somebody's keys is passed over, never emptied.
 */
export async function createTestQueueUrl(backend: QueueBackend, databaseUrl: string): Promise<string> {
  if (backend.name === 'PostgreSQL') return databaseUrl;
  const redisUrl = process.env.TEST_REDIS_URL;
  if (redisUrl === undefined) throw new Error('TEST_REDIS_URL is not set');
  return withRedis(redisUrl, async (redis) => {
    const count = await databaseCount(redis);
    for (let attempt = 0; attempt < count; attempt += 1) {
      await redis.send('SELECT', '0');
      const number = 1 + (Number(await redis.send('INCR', NEXT)) % (count - 1));
      if (await empty(redis, number)) {
        await redis.send('SET', MARK, '1');
        const url = new URL(redisUrl);
        url.pathname = `/${number}`;
        return url.href;
      }
    }
    throw new Error(`every logical database of the Redis for tests holds keys that are not a test's`);
  });
}

/** Empties what tests used, on a server that outlives the run. */
export async function removeTestQueues(redisUrl: string): Promise<void> {
  await withRedis(redisUrl, async (redis) => {
    const count = await databaseCount(redis);
    for (let number = 1; number < count; number += 1) {
      await redis.send('SELECT', String(number));
      if ((await redis.send('EXISTS', MARK)) === 1) await redis.send('FLUSHDB');
    }
    await redis.send('SELECT', '0');
    await redis.send('DEL', NEXT);
  });
}

/** False when the database is somebody else's. */
async function empty(redis: RedisConnection, number: number): Promise<boolean> {
  await redis.send('SELECT', String(number));
  if ((await redis.send('DBSIZE')) === 0) return true;
  if ((await redis.send('EXISTS', MARK)) === 0) return false;
  await redis.send('FLUSHDB');
  return true;
}

async function databaseCount(redis: RedisConnection): Promise<number> {
  // A managed server may not tell; 16 is what every one has.
  const reply = await redis.send('CONFIG', 'GET', 'databases').catch(() => null);
  return Number(Array.isArray(reply) ? reply[1] : 16) || 16;
}

async function withRedis<T>(url: string, use: (redis: RedisConnection) => Promise<T>): Promise<T> {
  const redis = await connectRedis(url);
  try {
    return await use(redis);
  } finally {
    redis.close();
  }
}
