import type { Queue } from 'bullmq';
import { Cluster } from 'ioredis';
import { parseData } from '../../patches/bullmq/readable-job.ts';
import type { Connector, PeekedJob } from '../backend.ts';
import { requireRedisClient } from './connection.ts';
import { isForbidden } from './forbidden.ts';

/*
 * A Redis at its `maxmemory` rejects every script of BullMQ that may write, including the one that moves a job to
 * active, so no waiting job would ever be processed. It accepts commands that only free memory, by which waiting jobs
 * can be drained.
 */

const OUT_OF_MEMORY = /\bOOM command not allowed\b/;
/** Errors that concern a job's data. Redis has no code for them, and accepts any bytes up to a size limit. */
const INVALID_DATA = /^ERR .*(string exceeds maximum allowed size|invalid bulk length|cmsgpack|cjson)/;
const USED_MEMORY = /^used_memory:(\d+)/m;
const MAX_MEMORY = /^maxmemory:(\d+)/m;
const EVICTION_POLICY = /^maxmemory_policy:([\w-]+)/m;
const NO_EVICTION = 'noeviction';

/** Returns the memory section of INFO. On a cluster a script names a key, so that the queue's server runs it. */
async function readMemoryInfo<Data>(queue: Queue<Data>): Promise<string> {
  const client = requireRedisClient(queue);
  if (!(client instanceof Cluster)) return await client.info('memory');
  return String(await client.eval(`return redis.call('INFO', 'memory')`, 1, queue.toKey('meta')));
}

function usedShareOf(memory: string): number {
  const max = Number(MAX_MEMORY.exec(memory)?.[1] ?? 0);
  return max === 0 ? 0 : Number(USED_MEMORY.exec(memory)?.[1] ?? 0) / max;
}

export const FULL_REDIS: Pick<
  Connector,
  'isFull' | 'isJobFault' | 'usedShare' | 'evictionPolicy' | 'peek' | 'discard' | 'lastDelayed'
> = {
  isFull: (error) => error instanceof Error && OUT_OF_MEMORY.test(error.message),

  isJobFault: (error) =>
    error instanceof Error && error.name === 'ReplyError' && INVALID_DATA.test(error.message),

  async usedShare(queue) {
    const client = requireRedisClient(queue);
    try {
      return usedShareOf(await readMemoryInfo(queue));
    } catch (error) {
      if (!isForbidden(error) || !(client instanceof Cluster)) throw error;
      // A user that may run no scripts takes the fullest server for that of the queue.
      const memories = await Promise.all(client.nodes('master').map((node) => node.info('memory')));
      return Math.max(...memories.map(usedShareOf));
    }
  },

  async evictionPolicy(queue) {
    const policy = EVICTION_POLICY.exec(await readMemoryInfo(queue))?.[1] ?? NO_EVICTION;
    return policy === NO_EVICTION ? null : policy;
  },

  async peek<Data>(queue: Queue<Data>, count: number): Promise<Omit<PeekedJob<Data>, 'shard'>[]> {
    const client = requireRedisClient(queue);
    const waiting = (await client.lrange(queue.toKey('wait'), -count, -1)).reverse();
    const ids =
      waiting.length > 0 ? waiting : await client.zrange(queue.toKey('prioritized'), 0, `${count - 1}`);
    const jobs = await Promise.all(
      ids.map(async (id) => ({ id, fields: await client.hmget(queue.toKey(id), 'data', 'timestamp') })),
    );
    return jobs.flatMap(({ id, fields: [data, timestamp] }) =>
      data ? [{ id, data: parseData(data) as Data, timestamp: Number(timestamp) }] : [],
    );
  },

  async discard(queue, jobIds) {
    const client = requireRedisClient(queue);
    await Promise.all(
      jobIds.map(async (id) => {
        const removed = await Promise.all([
          client.lrem(queue.toKey('wait'), -1, id),
          client.zrem(queue.toKey('prioritized'), id),
          client.zrem(queue.toKey('delayed'), id),
        ]);
        // A worker that took the job meanwhile still needs its data.
        if (removed.some((count) => count > 0)) await client.del(queue.toKey(id));
      }),
    );
  },

  async lastDelayed(queue, count) {
    return await requireRedisClient(queue).zrevrange(queue.toKey('delayed'), 0, count - 1);
  },
};
