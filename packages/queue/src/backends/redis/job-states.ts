import type { Queue } from 'bullmq';
import type { Connector, JobState } from '../backend.ts';
import { requireRedisClient } from './connection.ts';

/*
 * BullMQ stores a job in a hash, and its id in the list or sorted set of its state. A job whose hash exists but whose
 * id is in none of them is orphaned: no worker takes it, and its hash prevents other jobs with its id.
 */

/** Jobs of one script call, which takes less than 5 ms of the server's time. */
const IDS_PER_CALL = 1_000;
/** Entries of the wait list that one command reads, which takes about a millisecond of the server's time. */
const ENTRIES_PER_CALL = 5_000;
/** A longer list is not read, because reading it would exceed the timeout of a call. */
const ENTRIES_MAX = 2_000_000;

const STATE_KEYS = ['delayed', 'prioritized', 'active', 'failed', 'completed'] as const;

/**
 * Classifies a job by its hash, its lock and the sorted sets. The lists are not searched for each job: `active`, which
 * has as many entries as workers have jobs, is read once; `wait` is left to the caller. Text is returned for jobs that
 * are in `wait` or orphaned: the time at which the job was added, and the number of times that a worker has started it.
 * While this text is unchanged, an orphaned job stays orphaned: no worker can take it, and no other job with its id can
 * be added before its key is deleted.
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
  return job[1] .. ' ' .. (job[3] or '0')
end
`;
const CLASSIFY_ALL = `${CLASSIFY}
local classes = {}
for index = 2, #ARGV do classes[index - 1] = classify(ARGV[index]) end
return classes`;
/** Deletes jobs whose class has not changed. */
const REMOVE_ORPHANS = `${CLASSIFY}
for index = 2, #ARGV, 2 do
  local id = ARGV[index]
  if tostring(classify(id)) == ARGV[index + 1] then redis.call('DEL', ARGV[1] .. id, ARGV[1] .. id .. ':logs') end
end`;

/** Classes that {@link CLASSIFY} returns. */
const ENDED = -1;
const QUEUED = -2;
const ABSENT = -3;
const ORPHANED = -4;

interface Classified {
  state: JobState;
  /** Class that {@link CLASSIFY} returned. */
  class: number | string;
}

async function runScript<Data>(
  queue: Queue<Data>,
  script: string,
  args: readonly (string | number)[],
): Promise<unknown> {
  const keys = STATE_KEYS.map((name) => queue.toKey(name));
  return await requireRedisClient(queue).eval(script, keys.length, ...keys, queue.toKey(''), ...args);
}

async function classify<Data>(
  queue: Queue<Data>,
  jobIds: readonly string[],
): Promise<Map<string, Classified>> {
  const classified = new Map<string, Classified>();
  const unlisted = new Map<string, string>();
  for (let start = 0; start < jobIds.length; start += IDS_PER_CALL) {
    const page = jobIds.slice(start, start + IDS_PER_CALL);
    const classes = (await runScript(queue, CLASSIFY_ALL, page)) as (number | string)[];
    for (const [index, jobId] of page.entries()) {
      const found = classes[index] ?? ABSENT;
      if (typeof found === 'string') unlisted.set(jobId, found);
      else if (found !== ABSENT) classified.set(jobId, { state: STATES[found] ?? 'queued', class: found });
    }
  }
  const waiting = unlisted.size === 0 ? new Set<string>() : await findWaiting(queue, unlisted);
  for (const [jobId, found] of unlisted) {
    const state = waiting === null ? 'unsearched' : waiting.has(jobId) ? 'queued' : 'orphaned';
    classified.set(jobId, { state, class: found });
  }
  return classified;
}

const STATES: Record<number, JobState> = { [ENDED]: 'ended', [QUEUED]: 'queued', [ORPHANED]: 'orphaned' };

/**
 * Returns the jobs that are in the wait list, by one pass over it; null if it is too long. The pass begins at the end
 * where jobs are added, so a job that is added or taken meanwhile moves no entry to a part that was read before.
 */
async function findWaiting<Data>(
  queue: Queue<Data>,
  sought: ReadonlyMap<string, unknown>,
): Promise<Set<string> | null> {
  const client = requireRedisClient(queue);
  const waiting = new Set<string>();
  // BullMQ 5 moves the jobs of a paused queue to a separate list until it is resumed.
  for (const list of [queue.toKey('wait'), queue.toKey('paused')]) {
    if ((await client.llen(list)) > ENTRIES_MAX) return null;
    for (let start = 0; waiting.size < sought.size; start += ENTRIES_PER_CALL) {
      const entries = await client.lrange(list, start, start + ENTRIES_PER_CALL - 1);
      for (const jobId of entries) if (sought.has(jobId)) waiting.add(jobId);
      if (entries.length < ENTRIES_PER_CALL) break;
    }
  }
  return waiting;
}

/**
 * Orphaned jobs that the last {@link REDIS_JOB_STATES.jobStates} of a queue found, with their classes. Many small calls
 * remove them afterwards; without this cache each would read the wait list again.
 */
const lastOrphans = new WeakMap<object, ReadonlyMap<string, number | string>>();

function orphansIn(classified: ReadonlyMap<string, Classified>): Map<string, number | string> {
  const orphans = [...classified].filter(([, { state }]) => state === 'orphaned');
  return new Map(orphans.map(([jobId, { class: found }]) => [jobId, found]));
}

export const REDIS_JOB_STATES: Pick<Connector, 'jobStates' | 'removeOrphans'> = {
  async jobStates(queue, jobIds) {
    const classified = await classify(queue, jobIds);
    lastOrphans.set(queue, orphansIn(classified));
    return new Map(Array.from(classified, ([jobId, { state }]) => [jobId, state]));
  },

  async removeOrphans(queue, jobIds) {
    const cached = lastOrphans.get(queue);
    const others = orphansIn(
      await classify(
        queue,
        jobIds.filter((jobId) => !cached?.has(jobId)),
      ),
    );
    const orphans = jobIds.flatMap((jobId) => {
      const found = cached?.get(jobId) ?? others.get(jobId);
      return found === undefined ? [] : [[jobId, found] as const];
    });
    for (let start = 0; start < orphans.length; start += IDS_PER_CALL)
      await runScript(queue, REMOVE_ORPHANS, orphans.slice(start, start + IDS_PER_CALL).flat());
  },
};
