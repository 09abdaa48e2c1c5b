import {
  JOB_RUN_EVENTS,
  ONE_SHARD,
  parseShardMap,
  SHARDS_KEY,
  type ShardFields,
  type ShardMap,
  shardFields,
  shardPrefix,
  WEBHOOK_DELIVERIES,
} from '@runhook/contract';
import type { Queue } from 'bullmq';
import { Cluster, type Redis } from 'ioredis';
import { QueueUnavailableError, type ShardStore } from '../backend.ts';
import { requireRedisClient } from './connection.ts';
import { REDIS_FOREIGN_PUBLISHERS } from './foreign-publishers.ts';

/** Key of BullMQ's settings of this queue, which contain the version of the shard map and which publishers may read. */
const META_KEY = `${shardPrefix(0)}:${JOB_RUN_EVENTS}:meta`;
const META_FIELD = 'shards';
const READ_PERMISSION = `(+hget +hmget %R~${SHARDS_KEY})`;

const WRITE_MAP_SCRIPT = `
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if version ~= tonumber(ARGV[1]) - 1 then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'slots', ARGV[2], 'draining', ARGV[3])
redis.call('HSET', KEYS[2], '${META_FIELD}', ARGV[1])
return 1`;

export const REDIS_SHARDS: ShardStore = {
  read: (queue) => withReadPermission(queue as Queue, read),

  readIfChanged: (queue, cached) =>
    withReadPermission(queue as Queue, async (commands) => {
      if (cached === ONE_SHARD) return await read(commands);
      const version = await commands.hget(SHARDS_KEY, 'version');
      return Number(version ?? 0) === cached.version ? cached : await read(commands);
    }),

  async write(queue, map) {
    const { version, slots, draining } = shardFields(map);
    const client = requireRedisClient(queue as Queue);
    return (await client.eval(WRITE_MAP_SCRIPT, 2, SHARDS_KEY, META_KEY, version, slots, draining)) === 1;
  },

  async byServer(queue, count) {
    const client = requireRedisClient(queue as Queue);
    const shards = Array.from({ length: count }, (_, shard) => shard);
    if (!(client instanceof Cluster)) return [shards];
    const ranges = await client.cluster('SLOTS');
    const servers = new Map<string, number[]>();
    for (const shard of shards) {
      const slot = Number(await client.cluster('KEYSLOT', shardPrefix(shard)));
      const range = ranges.find(([first, last]) => first <= slot && slot <= last);
      const server = range?.[2]?.slice(0, 2).join(':') ?? '';
      servers.set(server, [...(servers.get(server) ?? []), shard]);
    }
    return [...servers.values()];
  },

  async withJobs(queue, shards, states) {
    const client = requireRedisClient(queue);
    const keysOf = (shard: number) =>
      [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES].flatMap((name) =>
        states.map((state) => `${shardPrefix(shard)}:${name}:${state}`),
      );
    const hasKeys = await anyExists(client, shards.map(keysOf));
    return new Set(shards.filter((_, index) => hasKeys[index]));
  },
};

/**
 * Returns, for each list of keys, whether any of them exists. On one server a single EXISTS of all keys comes first,
 * because usually none exists: Redis removes empty lists.
 */
export async function anyExists(
  client: Redis | Cluster | null,
  lists: readonly (readonly string[])[],
): Promise<boolean[]> {
  if (client === null) return lists.map(() => true);
  const isSeparate = client instanceof Cluster || lists.length === 1;
  if (!isSeparate && (await client.exists(...lists.flat())) === 0) return lists.map(() => false);
  return await Promise.all(lists.map(async (keys) => (await client.exists(...keys)) > 0));
}

async function read(commands: Redis | Cluster): Promise<ShardMap> {
  const [version, slots, draining] = await commands.hmget(SHARDS_KEY, ...MAP_FIELDS);
  return parseShardMap({ version, slots, draining } as Record<keyof ShardFields, string | null>);
}

const MAP_FIELDS: (keyof ShardFields)[] = ['version', 'slots', 'draining'];

/**
 * Reads the map. A user without the permission to read it, as of a publisher of a previous release, gets
 * {@link ONE_SHARD} while the settings of the queue show that no map is stored.
 */
async function withReadPermission(
  queue: Queue,
  call: (commands: Redis | Cluster) => Promise<ShardMap>,
): Promise<ShardMap> {
  const client = requireRedisClient(queue);
  try {
    return await call(client);
  } catch (error) {
    if (!REDIS_FOREIGN_PUBLISHERS.isForbidden(error)) throw error;
    if ((await client.hget(META_KEY, META_FIELD)) === null) return ONE_SHARD;
    throw new QueueUnavailableError(
      `The queue has several shards, and its user is not permitted to read the shard map: give it the rule ${READ_PERMISSION} (docs/security.md).`,
      { cause: error },
    );
  }
}
