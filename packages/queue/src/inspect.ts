// Apart from the queues: whoever only looks at their server loads nothing of BullMQ.
import { withinDeadline } from '@runhook/runtime/timers';
import { openRedisBeside } from './backends/redis/connection.ts';

/** What a server of queues says of itself. */
export interface QueueServer {
  /** As the server tells it: `8.2.1`. */
  version: string;
  /** What it does when it is full; queues lose jobs with any other than `noeviction`. */
  maxmemoryPolicy: string;
  /** How much of its memory is in use, from 0 to 1; null without a bound. */
  usedShare: number | null;
  /** Milliseconds since the epoch, by its own clock. */
  timeMs: number;
}

/**
 * Asks the Redis of a queue, once; of a cluster one node.
 * @throws with the driver's words when it does not answer in time
 */
export async function inspectRedis(queueUrl: string, timeoutMs: number): Promise<QueueServer> {
  let trouble: Error | null = null;
  const note = (error: Error) => {
    trouble = error;
  };
  const redis = await openRedisBeside(queueUrl, note, timeoutMs);
  try {
    return await withinDeadline(timeoutMs, async () => {
      const [seconds, micros] = await redis.time();
      const timeMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
      const said = `${await redis.info('server')}\n${await redis.info('memory')}`;
      const told = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(said)?.[1] ?? '';
      const max = Number(told('maxmemory'));
      return {
        version: told('redis_version'),
        maxmemoryPolicy: told('maxmemory_policy'),
        usedShare: max > 0 ? Number(told('used_memory')) / max : null,
        timeMs,
      };
    });
  } catch (error) {
    throw trouble ?? error;
  } finally {
    redis.disconnect();
  }
}
