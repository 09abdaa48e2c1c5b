import { SHARDS_MAX, shardPrefix } from '@runhook/contract';
import { BULLMQ_MAJOR_VERSION, type Queue } from 'bullmq';
import type { ChainableCommander } from 'ioredis';
import type { Connector, Strangers } from '../backend.ts';
import { clientOf } from './connection.ts';

/*
 * Foreign publishers on the same Redis: those whose user may only add jobs (docs/security.md#publishers-on-the-queue),
 * and those that publish under a prefix that no worker serves.
 */

/** Redis's errors for a forbidden command, and for one within a script. */
const FORBIDDEN = /\bNOPERM\b|The user executing the script can't|\bACL failure in script\b/;

export const REDIS_STRANGERS: Pick<
  Connector,
  'isForbidden' | 'present' | 'failedAmong' | 'strangers' | 'strangeVersion'
> = {
  isForbidden: (error) => error instanceof Error && FORBIDDEN.test(error.message),

  // EXISTS does not read the job.
  present: (queue, jobIds) =>
    chosen(queue, jobIds, (pipeline, jobId) => pipeline.exists(queue.toKey(jobId)), Boolean),

  failedAmong: (queue, jobIds) =>
    chosen(
      queue,
      jobIds,
      (pipeline, jobId) => pipeline.zscore(queue.toKey('failed'), jobId),
      (score) => score !== null,
    ),

  async strangers(queue) {
    const [elsewhere, version] = await Promise.all([queuesElsewhere(queue), strangeVersion(queue)]);
    return { elsewhere, version };
  },

  strangeVersion,
};

async function strangeVersion<Data>(queue: Queue<Data>): Promise<string | null> {
  const version = await queue.getVersion();
  return version === null || version.startsWith(`bullmq:${BULLMQ_MAJOR_VERSION}.`) ? null : version;
}

/** Returns the jobs for which `isChosen` accepts the result of their command. */
async function chosen<Data>(
  queue: Queue<Data>,
  jobIds: readonly string[],
  ask: (pipeline: ChainableCommander, jobId: string) => unknown,
  isChosen: (answer: unknown) => boolean,
): Promise<Set<string>> {
  const pipeline = clientOf(queue).pipeline();
  for (const jobId of jobIds) ask(pipeline, jobId);
  const answers = (await pipeline.exec()) ?? [];
  for (const [error] of answers) if (error) throw error;
  return new Set(jobIds.filter((_, index) => isChosen(answers[index]?.[1])));
}

/** Variants of BullMQ's default prefix, and Runhook's without its braces. Every check includes these. */
const LIKELY_PREFIXES = ['bull', 'runhook', '{bull}', 'bullmq'];
/** Limits a check to the keys that a server scans in a few milliseconds; the next check continues. */
const SCANS_PER_LOOK = 5;
const SCANNED_AT_ONCE = 1_000;
/** Maximum number of prefixes to report. */
const PREFIXES_MAX = 100;

/** Scan cursor of each server of a cluster between two checks. */
const cursors = new WeakMap<object, string>();
const found = new WeakMap<object, Set<string>>();

interface Server {
  scan(cursor: string, ...options: (string | number)[]): Promise<[string, string[]]>;
}

/** Returns queues of the same name under other prefixes, with the number of their waiting jobs. */
async function queuesElsewhere<Data>(queue: Queue<Data>): Promise<Strangers['elsewhere']> {
  const client = (await clientOf(queue)) as Awaited<ReturnType<typeof clientOf>> &
    Server & { nodes?(role: 'master'): Server[] };
  const prefixes = found.get(queue) ?? new Set(LIKELY_PREFIXES);
  found.set(queue, prefixes);
  const ending = `:${queue.name}:id`;
  for (const server of client.nodes?.('master') ?? [client])
    for (const key of await scanned(server, `*${ending}`))
      if (prefixes.size < PREFIXES_MAX) prefixes.add(key.slice(0, -ending.length));
  for (let shard = 0; shard < SHARDS_MAX; shard += 1) prefixes.delete(shardPrefix(shard));
  const counted = await Promise.all(
    [...prefixes].map(async (prefix) => {
      const at = `${prefix}:${queue.name}`;
      // Counted by separate commands, because the keys of another prefix may be on several servers.
      const counts = [
        client.llen(`${at}:wait`),
        client.zcard(`${at}:prioritized`),
        client.zcard(`${at}:delayed`),
      ];
      return { prefix, jobs: (await Promise.all(counts)).reduce((sum, count) => sum + count, 0) };
    }),
  );
  return counted.filter(({ jobs }) => jobs > 0);
}

async function scanned(server: Server, pattern: string): Promise<string[]> {
  const keys: string[] = [];
  let cursor = cursors.get(server) ?? '0';
  for (let scan = 0; scan < SCANS_PER_LOOK; scan += 1) {
    const [next, some] = await server.scan(cursor, 'MATCH', pattern, 'COUNT', SCANNED_AT_ONCE);
    keys.push(...some);
    cursor = next;
    if (cursor === '0') break;
  }
  cursors.set(server, cursor);
  return keys;
}
