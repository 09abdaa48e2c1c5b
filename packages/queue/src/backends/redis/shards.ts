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
import type { Cluster, Redis } from 'ioredis';
import { QueueUnavailableError, type ShardStore } from '../backend.ts';
import { existing } from './at-rest.ts';
import { clientOf } from './full.ts';
import { REDIS_STRANGERS } from './strangers.ts';

/** What is used of ioredis beside what everybody uses; the last are a cluster's. */
interface Commands {
  hget(key: string, field: string): Promise<string | null>;
  hmget(key: string, ...fields: string[]): Promise<(string | null)[]>;
  eval(script: string, keys: number, ...given: string[]): Promise<unknown>;
  cluster(subcommand: string, ...given: string[]): Promise<unknown>;
  nodes?: unknown;
}

const commandsOf = async (queue: Queue) => (await clientOf(queue)) as unknown as Commands;

/** In the settings that BullMQ keeps of this queue, which whoever publishes may read: the version of the map. */
const META_KEY = `${shardPrefix(0)}:${JOB_RUN_EVENTS}:meta`;
const META_FIELD = 'shards';
const RULE = `(+hget +hmget %R~${SHARDS_KEY})`;

const WRITE = `
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if version ~= tonumber(ARGV[1]) - 1 then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'slots', ARGV[2], 'draining', ARGV[3])
redis.call('HSET', KEYS[2], '${META_FIELD}', ARGV[1])
return 1`;

export const REDIS_SHARDS: ShardStore = {
  read: (queue) => permitted(queue as Queue, read),

  readIfChanged: (queue, known) =>
    permitted(queue as Queue, async (commands) => {
      if (known === ONE_SHARD) return await read(commands);
      const version = await commands.hget(SHARDS_KEY, 'version');
      return Number(version ?? 0) === known.version ? known : await read(commands);
    }),

  async write(queue, map) {
    const { version, slots, draining } = shardFields(map);
    const commands = await commandsOf(queue as Queue);
    return (await commands.eval(WRITE, 2, SHARDS_KEY, META_KEY, version, slots, draining)) === 1;
  },

  async byServer(queue, count) {
    const commands = await commandsOf(queue as Queue);
    const shards = Array.from({ length: count }, (_, shard) => shard);
    if (commands.nodes === undefined) return [shards];
    const ranges = (await commands.cluster('SLOTS')) as [number, number, [string, number, string]][];
    const servers = new Map<string, number[]>();
    for (const shard of shards) {
      const slot = Number(await commands.cluster('KEYSLOT', shardPrefix(shard)));
      const range = ranges.find(([first, last]) => first <= slot && slot <= last);
      const server = range?.[2].slice(0, 2).join(':') ?? '';
      servers.set(server, [...(servers.get(server) ?? []), shard]);
    }
    return [...servers.values()];
  },

  async withJobs(queue, shards, states) {
    const client = (await clientOf(queue)) as unknown as Redis | Cluster;
    const keysOf = (shard: number) =>
      [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES].flatMap((name) =>
        states.map((state) => `${shardPrefix(shard)}:${name}:${state}`),
      );
    const there = await existing(client, shards.map(keysOf));
    return new Set(shards.filter((_, index) => there[index]));
  },
};

async function read(commands: Commands): Promise<ShardMap> {
  const [version, slots, draining] = await commands.hmget(SHARDS_KEY, ...FIELDS);
  return parseShardMap({ version, slots, draining } as Record<keyof ShardFields, string | null>);
}

const FIELDS: (keyof ShardFields)[] = ['version', 'slots', 'draining'];

/**
 * A publisher's user of a former release may not read the map. As long as nobody has written one it need not: that the
 * settings of the queue tell, too.
 */
async function permitted(queue: Queue, work: (commands: Commands) => Promise<ShardMap>): Promise<ShardMap> {
  const commands = await commandsOf(queue);
  try {
    return await work(commands);
  } catch (error) {
    if (!REDIS_STRANGERS.isForbidden(error)) throw error;
    if ((await commands.hget(META_KEY, META_FIELD)) === null) return ONE_SHARD;
    throw new QueueUnavailableError(
      `The queue has several shards, and its user may not read which: give it the rule ${RULE} (docs/security.md).`,
      { cause: error },
    );
  }
}
