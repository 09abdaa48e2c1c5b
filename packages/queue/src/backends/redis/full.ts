import type { Queue } from 'bullmq';
import { parseData } from '../../patches/bullmq/readable-job.ts';
import type { Connector, PeekedJob } from '../backend.ts';
import { clientOf } from './connection.ts';

/*
 * A Redis at its `maxmemory` refuses every script of BullMQ that may write, moving a job to active too: nothing that
 * waits would ever leave. Commands that only free memory pass, so that what waits can be worked off by hand.
 */

const FULL = /\bOOM command not allowed\b/;
/** Redis has no error code for invalid data, and takes any bytes up to a size: only these phrases of its replies concern a job's data. */
const DATA = /^ERR .*(string exceeds maximum allowed size|invalid bulk length|cmsgpack|cjson)/;
const USED = /^used_memory:(\d+)/m;
const MAX = /^maxmemory:(\d+)/m;
const POLICY = /^maxmemory_policy:([\w-]+)/m;
const KEEPS = 'noeviction';

/** What the server that has a queue tells of its memory: a cluster asks any of its servers what names no key. */
async function memoryOf<Data>(queue: Queue<Data>): Promise<string> {
  const client = clientOf(queue);
  return String(await client.eval(`return redis.call('INFO', 'memory')`, 1, queue.toKey('meta')));
}

export const FULL_REDIS: Pick<
  Connector,
  'isFull' | 'isJobFault' | 'usedShare' | 'evictionPolicy' | 'peek' | 'discard' | 'lastDelayed'
> = {
  isFull: (error) => error instanceof Error && FULL.test(error.message),

  isJobFault: (error) => error instanceof Error && error.name === 'ReplyError' && DATA.test(error.message),

  async usedShare(queue) {
    const memory = await memoryOf(queue);
    const max = Number(MAX.exec(memory)?.[1] ?? 0);
    return max === 0 ? 0 : Number(USED.exec(memory)?.[1] ?? 0) / max;
  },

  async evictionPolicy(queue) {
    const policy = POLICY.exec(await memoryOf(queue))?.[1] ?? KEEPS;
    return policy === KEEPS ? null : policy;
  },

  async peek<Data>(queue: Queue<Data>, count: number): Promise<Omit<PeekedJob<Data>, 'shard'>[]> {
    const client = clientOf(queue);
    const waiting = (await client.lrange(queue.toKey('wait'), -count, -1)).reverse();
    const ids =
      waiting.length > 0 ? waiting : await client.zrange(queue.toKey('prioritized'), 0, `${count - 1}`);
    const jobs = await Promise.all(
      ids.map(async (id) => ({ id, kept: await client.hmget(queue.toKey(id), 'data', 'timestamp') })),
    );
    return jobs.flatMap(({ id, kept: [data, timestamp] }) =>
      data ? [{ id, data: parseData(data) as Data, timestamp: Number(timestamp) }] : [],
    );
  },

  async discard(queue, jobIds) {
    const client = clientOf(queue);
    await Promise.all(
      jobIds.map(async (id) => {
        const removed = await Promise.all([
          client.lrem(queue.toKey('wait'), -1, id),
          client.zrem(queue.toKey('prioritized'), id),
          client.zrem(queue.toKey('delayed'), id),
        ]);
        // A worker that took it meanwhile needs the rest of it.
        if (removed.some((count) => count > 0)) await client.del(queue.toKey(id));
      }),
    );
  },

  async lastDelayed(queue, count) {
    return await clientOf(queue).zrevrange(queue.toKey('delayed'), 0, count - 1);
  },
};
