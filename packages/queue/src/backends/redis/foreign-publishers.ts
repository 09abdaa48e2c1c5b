import { SHARDS_MAX, shardPrefix } from '@runhook/contract';
import { BULLMQ_MAJOR_VERSION, type Queue } from 'bullmq';
import type { ChainableCommander } from 'ioredis';
import type { Connector, ForeignPublishers } from '../backend.ts';
import { requireRedisClient } from './connection.ts';
import { isForbidden } from './forbidden.ts';

/*
 * Foreign publishers on the same Redis: those whose user may only add jobs (docs/security.md#publishers-on-the-queue),
 * and those that publish under a prefix that no worker serves.
 */

export const REDIS_FOREIGN_PUBLISHERS: Pick<
  Connector,
  'isForbidden' | 'findExisting' | 'findFailed' | 'findForeignPublishers' | 'findForeignVersion'
> = {
  isForbidden,

  // EXISTS does not read the job.
  findExisting: (queue, jobIds) =>
    filterByReply(queue, jobIds, (pipeline, jobId) => pipeline.exists(queue.toKey(jobId)), Boolean),

  findFailed: (queue, jobIds) =>
    filterByReply(
      queue,
      jobIds,
      (pipeline, jobId) => pipeline.zscore(queue.toKey('failed'), jobId),
      (score) => score !== null,
    ),

  async findForeignPublishers(queue) {
    const [foreignQueues, version] = await Promise.all([findForeignQueues(queue), findForeignVersion(queue)]);
    return { foreignQueues, version };
  },

  findForeignVersion,
};

async function findForeignVersion<Data>(queue: Queue<Data>): Promise<string | null> {
  const version = await queue.getVersion();
  return version === null || version.startsWith(`bullmq:${BULLMQ_MAJOR_VERSION}.`) ? null : version;
}

/** Returns the jobs for which `matches` accepts the result of their command. */
async function filterByReply<Data>(
  queue: Queue<Data>,
  jobIds: readonly string[],
  addCommand: (pipeline: ChainableCommander, jobId: string) => unknown,
  matches: (reply: unknown) => boolean,
): Promise<Set<string>> {
  const pipeline = requireRedisClient(queue).pipeline();
  for (const jobId of jobIds) addCommand(pipeline, jobId);
  const replies = (await pipeline.exec()) ?? [];
  for (const [error] of replies) if (error) throw error;
  return new Set(jobIds.filter((_, index) => matches(replies[index]?.[1])));
}

/** Variants of BullMQ's default prefix, and Runhook's without its braces. Every check includes these. */
const LIKELY_PREFIXES = ['bull', 'runhook', '{bull}', 'bullmq'];
/** Limits a check to the keys that a server scans in a few milliseconds; the next check continues. */
const SCANS_PER_PASS = 5;
const KEYS_PER_SCAN = 1_000;
/** Maximum number of prefixes to check. */
const PREFIXES_MAX = 100;

/** Scan cursor of each server of a cluster between two checks. */
const cursors = new WeakMap<object, string>();
const foundPrefixes = new WeakMap<object, Set<string>>();

interface Server {
  scan(cursor: string, ...options: (string | number)[]): Promise<[string, string[]]>;
}

/** Returns queues of the same name under other prefixes that have waiting or delayed jobs, with their number. */
async function findForeignQueues<Data>(queue: Queue<Data>): Promise<ForeignPublishers['foreignQueues']> {
  const client = (await requireRedisClient(queue)) as Awaited<ReturnType<typeof requireRedisClient>> &
    Server & { nodes?(role: 'master'): Server[] };
  const prefixes = foundPrefixes.get(queue) ?? new Set(LIKELY_PREFIXES);
  foundPrefixes.set(queue, prefixes);
  const ending = `:${queue.name}:id`;
  for (const server of client.nodes?.('master') ?? [client])
    for (const key of await scanKeys(server, `*${ending}`))
      if (prefixes.size < PREFIXES_MAX) prefixes.add(key.slice(0, -ending.length));
  for (let shard = 0; shard < SHARDS_MAX; shard += 1) prefixes.delete(shardPrefix(shard));
  const counted = await Promise.all(
    [...prefixes].map(async (prefix) => {
      const keyPrefix = `${prefix}:${queue.name}`;
      // Counted by separate commands, because the keys of another prefix may be on several servers.
      const counts = [
        client.llen(`${keyPrefix}:wait`),
        client.zcard(`${keyPrefix}:prioritized`),
        client.zcard(`${keyPrefix}:delayed`),
      ];
      return { prefix, jobs: (await Promise.all(counts)).reduce((sum, count) => sum + count, 0) };
    }),
  );
  return counted.filter(({ jobs }) => jobs > 0);
}

async function scanKeys(server: Server, pattern: string): Promise<string[]> {
  const keys: string[] = [];
  let cursor = cursors.get(server) ?? '0';
  for (let scan = 0; scan < SCANS_PER_PASS; scan += 1) {
    const [next, page] = await server.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_PER_SCAN);
    keys.push(...page);
    cursor = next;
    if (cursor === '0') break;
  }
  cursors.set(server, cursor);
  return keys;
}
