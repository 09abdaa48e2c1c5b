import { once } from 'node:events';
import type { Cluster, Redis } from 'ioredis';
import { openClient } from './redis-client.ts';
import { parseRedisUrl } from './redis-url.ts';

const CONNECT_TIMEOUT_MS = 3_000;
const COMMAND_TIMEOUT_MS = 500;
const FIRST_CONNECTION_WAIT_MS = 1_000;

/**
 * A connection to the Redis of QUEUE_URL for small things beside the queues. Its commands fail, at once while there is
 * no connection and after 500 ms without an answer: callers must have another way. Resolves when it is connected, or
 * after a second without; it goes on trying by itself until `disconnect()`.
 * @param onError told of every connection that breaks or cannot be made
 */
export async function openRedis(queueUrl: string, onError: (error: Error) => void): Promise<Redis | Cluster> {
  const redis = openClient(parseRedisUrl(queueUrl), {
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', onError);
  const patience = AbortSignal.timeout(FIRST_CONNECTION_WAIT_MS);
  // Rejects with the first error as well; that one was told already.
  await once(redis, 'ready', { signal: patience }).catch(() => undefined);
  return redis;
}
