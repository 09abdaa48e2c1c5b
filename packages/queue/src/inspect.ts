// Separate from the queues, so that a process that only inspects their server does not load BullMQ.
import { withinDeadline } from '@runhook/runtime/timers';
import { openRedisConnection } from './backends/redis/connection.ts';

export { queueUrlWithLogin } from './queue-url.ts';

/** State that a queue's server reports. */
export interface QueueServer {
  /** Version in the server's format: `8.2.1`. */
  version: string;
  /** Eviction policy of a full server; queues lose jobs with any other than `noeviction`. */
  maxmemoryPolicy: string;
  /** Share of the server's memory in use, from 0 to 1; null without a limit. */
  usedShare: number | null;
  /** The server's time, in milliseconds since the epoch. */
  timeMs: number;
}

/**
 * Inspects the Redis of a queue; one node of a cluster.
 * @throws the driver's error, or a DeadlineError, when it does not respond in time
 */
export async function inspectRedis(queueUrl: string, timeoutMs: number): Promise<QueueServer> {
  let connectionError: Error | null = null;
  const note = (error: Error) => {
    connectionError = error;
  };
  const redis = await openRedisConnection(queueUrl, note, timeoutMs);
  try {
    return await withinDeadline(timeoutMs, async () => {
      const [seconds, micros] = await redis.time();
      const timeMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
      const info = `${await redis.info('server')}\n${await redis.info('memory')}`;
      const readField = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
      const max = Number(readField('maxmemory'));
      return {
        version: readField('redis_version'),
        maxmemoryPolicy: readField('maxmemory_policy'),
        usedShare: max > 0 ? Number(readField('used_memory')) / max : null,
        timeMs,
      };
    });
  } catch (error) {
    throw connectionError ?? error;
  } finally {
    redis.disconnect();
  }
}
