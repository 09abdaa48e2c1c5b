import type { Queue } from 'bullmq';
import type { Connector, JobState } from '../backend.ts';
import { clientOf } from './full.ts';

/*
 * BullMQ keeps a job in a hash, and its id in the list or the sorted set of its state. A job whose hash is left but whose id is in
 * none of them is orphaned: no worker takes it, and its hash keeps every other job with its id out.
 */

/** The commands of ioredis that are used here; BullMQ's client passes them through. */
interface Commands {
  eval(script: string, keyCount: number, ...keysAndArguments: (string | number)[]): Promise<unknown>;
  llen(key: string): Promise<number>;
  lrange(key: string, start: number, end: number): Promise<string[]>;
}

const commandsOf = async <Data>(queue: Queue<Data>) => (await clientOf(queue)) as unknown as Commands;

/** Jobs of one script call, which takes less than 5 ms of the server. */
const IDS_AT_ONCE = 1_000;
/** Entries of the wait list that one call reads; a list longer than the maximum is not read. */
const ENTRIES_AT_ONCE = 5_000;
const ENTRIES_MAX = 50_000;

const STATE_KEYS = ['delayed', 'prioritized', 'active', 'failed', 'completed'] as const;

/**
 * Classifies a job by its hash, its lock and the sorted sets. The lists are not searched for each job: `active`, which has as many entries as
 * workers have jobs, is read once; `wait` is left to the caller. Values above 0 are of jobs that are in `wait` or orphaned: one more than
 * the number of times that a worker has started the job.
 */
const CLASSIFY = `
local ENDED, QUEUED, ABSENT, ORPHANED = -1, -2, -3, -4
local isActive
local function inActiveList(id)
  if not isActive then
    isActive = {}
    for _, active in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do isActive[active] = true end
  end
  return isActive[id]
end
local function classify(id)
  local key = ARGV[1] .. id
  local job = redis.call('HMGET', key, 'timestamp', 'finishedOn', 'ats')
  if not job[1] then return ABSENT end
  if job[2] then
    local isListed = redis.call('ZSCORE', KEYS[4], id) or redis.call('ZSCORE', KEYS[5], id)
    return isListed and ENDED or ORPHANED
  end
  if redis.call('ZSCORE', KEYS[1], id) or redis.call('ZSCORE', KEYS[2], id) then return QUEUED end
  if redis.call('EXISTS', key .. ':lock') == 1 or inActiveList(id) then return QUEUED end
  return 1 + (tonumber(job[3]) or 0)
end
`;
const CLASSIFY_ALL = `${CLASSIFY}
local classes = {}
for index = 2, #ARGV do classes[index - 1] = classify(ARGV[index]) end
return classes`;
/** A job that a worker has started since it was classified is not orphaned, in whatever list it is now. */
const REMOVE = `${CLASSIFY}
for index = 2, #ARGV, 2 do
  local id = ARGV[index]
  if classify(id) == tonumber(ARGV[index + 1]) then redis.call('DEL', ARGV[1] .. id, ARGV[1] .. id .. ':logs') end
end`;

const ENDED = -1;
const QUEUED = -2;
const ABSENT = -3;
const ORPHANED = -4;

interface Classified {
  state: JobState;
  /** As {@link CLASSIFY} returned it. */
  class: number;
}

async function runScript<Data>(
  queue: Queue<Data>,
  script: string,
  given: readonly (string | number)[],
): Promise<unknown> {
  const keys = STATE_KEYS.map((name) => queue.toKey(name));
  return await (await commandsOf(queue)).eval(script, keys.length, ...keys, queue.toKey(''), ...given);
}

async function classify<Data>(
  queue: Queue<Data>,
  jobIds: readonly string[],
): Promise<Map<string, Classified>> {
  const classified = new Map<string, Classified>();
  const unlisted = new Map<string, number>();
  for (let start = 0; start < jobIds.length; start += IDS_AT_ONCE) {
    const page = jobIds.slice(start, start + IDS_AT_ONCE);
    const classes = (await runScript(queue, CLASSIFY_ALL, page)) as number[];
    for (const [index, jobId] of page.entries()) {
      const found = classes[index] ?? ABSENT;
      if (found > 0) unlisted.set(jobId, found);
      else if (found !== ABSENT) classified.set(jobId, { state: STATES[found] ?? 'queued', class: found });
    }
  }
  const waiting = unlisted.size === 0 ? new Set<string>() : await waitingAmong(queue, unlisted);
  for (const [jobId, found] of unlisted) {
    const state = waiting === null ? 'unsearched' : waiting.has(jobId) ? 'queued' : 'orphaned';
    classified.set(jobId, { state, class: found });
  }
  return classified;
}

const STATES: Record<number, JobState> = { [ENDED]: 'ended', [QUEUED]: 'queued', [ORPHANED]: 'orphaned' };

/**
 * Which of the jobs are in the wait list, by one pass over it; null if it is too long for one. The pass begins where jobs are added, so a
 * job that is added or taken meanwhile moves no entry to a part that was read before.
 */
async function waitingAmong<Data>(
  queue: Queue<Data>,
  sought: ReadonlyMap<string, unknown>,
): Promise<Set<string> | null> {
  const commands = await commandsOf(queue);
  const waiting = new Set<string>();
  // Jobs of a paused queue of BullMQ 5 are in a list of their own until it is resumed.
  for (const list of [queue.toKey('wait'), queue.toKey('paused')]) {
    if ((await commands.llen(list)) > ENTRIES_MAX) return null;
    for (let start = 0; waiting.size < sought.size; start += ENTRIES_AT_ONCE) {
      const entries = await commands.lrange(list, start, start + ENTRIES_AT_ONCE - 1);
      for (const jobId of entries) if (sought.has(jobId)) waiting.add(jobId);
      if (entries.length < ENTRIES_AT_ONCE) break;
    }
  }
  return waiting;
}

export const REDIS_JOB_STATES: Pick<Connector, 'jobStates' | 'removeOrphans'> = {
  async jobStates(queue, jobIds) {
    const classified = await classify(queue, jobIds);
    return new Map(Array.from(classified, ([jobId, { state }]) => [jobId, state]));
  },

  async removeOrphans(queue, jobIds) {
    const orphans = [...(await classify(queue, jobIds))].filter(([, { state }]) => state === 'orphaned');
    for (let start = 0; start < orphans.length; start += IDS_AT_ONCE) {
      const page = orphans.slice(start, start + IDS_AT_ONCE);
      await runScript(
        queue,
        REMOVE,
        page.flatMap(([jobId, { class: found }]) => [jobId, found]),
      );
    }
  },
};
