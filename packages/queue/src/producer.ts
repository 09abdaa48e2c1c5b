import { type ShardMap, shardOf, shardsInUse } from '@runhook/contract';
import { callHalving } from '@runhook/runtime/halving';
import type { Queue } from 'bullmq';
import { type AddedJob, type JobState, JobsRejectedError, type RejectedJob } from './backends/backend.ts';
import type { QueueBackend } from './backends/index.ts';
import type { QueueTelemetry } from './telemetry.ts';

/**
 * Adds jobs to the queues of a name, one for each shard, opened by its first call. BullMQ caches a failure of its first
 * connection forever, so a queue that did not become ready is discarded and the next call opens another.
 */
export interface Producer<Data> {
  /** Runs one call with a timeout on a shard, 0 when omitted. Throws `QueueUnavailableError` when the queue fails. */
  call<T>(work: (queue: Queue<Data>) => Promise<T>, shard?: number): Promise<T>;
  /** Runs a call concurrently on each shard that may have jobs; returns the results in the order of shards. */
  callEach<T>(work: (queue: Queue<Data>, shard: number) => Promise<T>): Promise<T[]>;
  /** Runs a call on each shard, or only on shard 0 if all shards are on one server. */
  callEachServer<T>(work: (queue: Queue<Data>) => Promise<T>): Promise<T[]>;
  /**
   * Asks first which shards may have jobs in these states, and runs a call on those; the result of the others is
   * `fallback`.
   */
  callWithJobs<T>(
    states: readonly string[],
    work: (queue: Queue<Data>, shard: number) => Promise<T>,
    fallback: T,
  ): Promise<[shard: number, result: T][]>;
  /** Runs a call on the shard of each item's account, with the items of a shard in their order. */
  callByShard<Item extends AccountItem>(
    items: readonly Item[],
    work: (queue: Queue<Data>, items: Item[]) => Promise<void>,
  ): Promise<void>;
  /** Whether the cached map has more than one shard. */
  isDivided(): boolean;
  close(): Promise<void>;
}

/** An item, whose account determines its shard; without an account the shard is 0. */
export interface AccountItem {
  accountId?: number | undefined;
}

/** Returns the telemetry of a queue; called when the queue is opened. */
export type TelemetrySource = () => Promise<QueueTelemetry | undefined>;

export function createProducer<Data>(
  backend: QueueBackend,
  name: string,
  onError: (error: Error) => void,
  telemetry?: TelemetrySource,
): Producer<Data> {
  const opened = new Map<number, Promise<Queue<Data>>>();

  async function open(shard: number): Promise<Queue<Data>> {
    let queue: Queue<Data> | null = null;
    try {
      return await backend.withinCallTimeout(async () => {
        // May throw, because it reads the certificates that the URL names.
        queue = backend.createQueue<Data>(name, await telemetry?.(), shard);
        // The queues share a connection, so only one of them reports its errors.
        queue.on('error', shard === 0 ? onError : () => undefined);
        await queue.waitUntilReady();
        return queue;
      });
    } catch (error) {
      (queue as Queue<Data> | null)?.close().catch(onError);
      throw error;
    }
  }

  /** Returns the queue. If it could not be opened, the next call opens it again. */
  function openOnce(shard: number): Promise<Queue<Data>> {
    const cached = opened.get(shard);
    if (cached !== undefined) return cached;
    const opening = open(shard);
    opened.set(shard, opening);
    opening.catch(() => opened.delete(shard));
    return opening;
  }

  async function call<T>(work: (queue: Queue<Data>) => Promise<T>, shard = 0): Promise<T> {
    const queue = await openOnce(shard);
    return await backend.withinCallTimeout(() => work(queue));
  }

  const { shardMaps } = backend;
  const shardMap = (): ShardMap | Promise<ShardMap> =>
    shardMaps.recentMap(() => openOnce(0) as Promise<Queue>) ??
    call((queue) => shardMaps.refresh(queue as Queue));

  async function callEach<T>(work: (queue: Queue<Data>, shard: number) => Promise<T>): Promise<T[]> {
    const shards = shardsInUse(await shardMap());
    return await settleAll(shards.map((shard) => call((queue) => work(queue, shard), shard)));
  }

  return {
    call,
    callEach,
    callEachServer: async (work) => (backend.isSpread ? await callEach(work) : [await call(work)]),
    async callWithJobs(states, work, fallback) {
      const shards = shardsInUse(await shardMap());
      const queues = await settleAll(shards.map(openOnce));
      const queuesWithJobs = await backend.withinCallTimeout(() => backend.queuesWithJobs(queues, states));
      const callOrFallback = async (shard: number, queue: Queue<Data>) =>
        queuesWithJobs.has(queue) ? await call(() => work(queue, shard), shard) : fallback;
      const results = await settleAll(
        shards.map((shard, index) => callOrFallback(shard, queues[index] as Queue<Data>)),
      );
      return shards.map((shard, index) => [shard, results[index] as (typeof results)[number]]);
    },
    async callByShard(items, work) {
      const map = await shardMap();
      const byShard = new Map<number, (typeof items)[number][]>();
      for (const item of items) {
        const shard = item.accountId === undefined ? 0 : shardOf(map, item.accountId);
        const shardItems = byShard.get(shard);
        if (shardItems) shardItems.push(item);
        else byShard.set(shard, [item]);
      }
      await settleAll(
        Array.from(byShard, ([shard, shardItems]) => call((queue) => work(queue, shardItems), shard)),
      );
    },
    isDivided: () => shardsInUse(shardMaps.cached).length > 1,
    async close() {
      const queues = await Promise.all(Array.from(opened.values(), (one) => one.catch(() => undefined)));
      await Promise.all(queues.map((queue) => queue?.close()));
    },
  };
}

/** Waits for calls to several shards. Throws the first error; if all reject jobs, one error with all these jobs. */
async function settleAll<T>(calls: Promise<T>[]): Promise<T[]> {
  const faults = (await Promise.allSettled(calls)).flatMap((one) =>
    one.status === 'rejected' ? [one.reason as unknown] : [],
  );
  const rejections = faults.filter((fault) => fault instanceof JobsRejectedError);
  if (rejections.length > 0 && rejections.length === faults.length)
    throw new JobsRejectedError(rejections.flatMap(({ rejected }) => rejected));
  for (const fault of faults) if (!(fault instanceof JobsRejectedError)) throw fault;
  return await Promise.all(calls);
}

export type NewJob<Data> = AddedJob<Data>;

/**
 * Adds jobs in order, except those whose id exists. When it throws, some may have been added; a retry must use the same
 * ids. If the server rejects the data of a job, the call is halved until that job is isolated.
 * @returns the jobs that were rejected; all others were added
 */
export async function addJobs<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<RejectedJob[]> {
  // Added individually, each job would have a separate span, under the active trace instead of the job's.
  const isTraced = queue.opts.telemetry !== undefined;
  const add = async (part: readonly NewJob<Data>[]) => {
    if (part.length > backend.singleAddMax || isTraced) await queue.addBulk([...part]);
    else for (const { name, data, opts } of part) await queue.add(name, data, opts);
  };
  return await addHalving(backend, jobs, add);
}

async function addHalving<Data>(
  backend: QueueBackend,
  jobs: readonly NewJob<Data>[],
  add: (part: readonly NewJob<Data>[]) => Promise<void>,
): Promise<RejectedJob[]> {
  const isFault = (error: unknown) => error instanceof TypeError || backend.isJobFault(error);
  const rejected = await callHalving(jobs, add, isFault);
  return rejected.map(({ item, error }) => ({ jobId: jobIdOf(item), error }));
}

export const jobIdOf = <Data>({ opts }: NewJob<Data>) => opts?.jobId ?? '';

/** Throws {@link JobsRejectedError} if any job was rejected. */
export function throwIfRejected(rejected: readonly RejectedJob[]): void {
  if (rejected.length > 0) throw new JobsRejectedError(rejected);
}

/** Maximum number of jobs of a bulk call, so that a thousand woken lanes do not delay other calls. */
const BULK_SIZE = 100;

/**
 * Adds as {@link addJobs}, each item on the shard of its account, in several calls with a timeout each. Throws
 * {@link JobsRejectedError} once all others are added.
 */
export async function addInBulks<Data, Item extends AccountItem>(
  backend: QueueBackend,
  producer: Producer<Data>,
  items: readonly Item[],
  jobOf: (item: Item) => NewJob<Data>,
  add: typeof addJobs = addJobs,
): Promise<void> {
  const rejected: RejectedJob[] = [];
  for (let start = 0; start < items.length; start += BULK_SIZE) {
    const bulk = items.slice(start, start + BULK_SIZE);
    await producer.callByShard(bulk, async (queue, shardItems) => {
      rejected.push(...(await add(backend, queue, shardItems.map(jobOf))));
    });
  }
  throwIfRejected(rejected);
}

/**
 * Returns the ids of the items that are in any shard. The shard of an item's account is searched first, then all shards
 * for missing ones: an item may have been added before its account moved to this shard.
 */
export async function findQueuedOnAnyShard<Data, Item extends AccountItem>(
  producer: Producer<Data>,
  items: readonly Item[],
  idOf: (item: Item) => string,
  findQueued: (queue: Queue<Data>, items: readonly Item[]) => Promise<ReadonlySet<string>>,
): Promise<Set<string>> {
  const queued = new Set<string>();
  const addIds = (ids: ReadonlySet<string>) => {
    for (const id of ids) queued.add(id);
  };
  await producer.callByShard(items, async (queue, shardItems) => addIds(await findQueued(queue, shardItems)));
  const missing = items.filter((item) => !queued.has(idOf(item)));
  if (missing.length > 0 && producer.isDivided())
    await producer.callEach(async (queue) => addIds(await findQueued(queue, missing)));
  return queued;
}

/** Returns the eviction policy of any server that evicts data when it is full; null when all retain it. */
export async function findEvictionPolicy<Data>(
  backend: QueueBackend,
  producer: Producer<Data>,
): Promise<string | null> {
  const policies = await producer.callEachServer((queue) => backend.evictionPolicy(queue));
  return policies.find((policy) => policy !== null) ?? null;
}

const COUNTED_STATES = [
  'wait',
  'active',
  'delayed',
  'prioritized',
  'failed',
  'completed',
  'waiting-children',
];
const ZERO_COUNTS = { waiting: 0, active: 0, delayed: 0, prioritized: 0, failed: 0, completed: 0 };

/** Returns the number of jobs by state, of all shards together. */
export async function countJobs<Data>(producer: Producer<Data>): Promise<Record<string, number>> {
  const counted = await producer.callWithJobs<Record<string, number>>(
    COUNTED_STATES,
    (queue) => queue.getJobCounts(),
    ZERO_COUNTS,
  );
  return sumCounts(counted.map(([, counts]) => counts));
}

export function sumCounts(counts: readonly Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const one of counts)
    for (const [state, count] of Object.entries(one)) sums[state] = (sums[state] ?? 0) + count;
  return sums;
}

/**
 * Returns the job ids that a worker will take or has taken. An ended job, which is retained for operators, is not among
 * them, and neither is an orphaned one. A job that was not searched for counts as queued.
 */
export async function findQueuedJobs<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobIds: readonly string[],
): Promise<Set<string>> {
  const states = await backend.jobStates(queue, jobIds);
  const isQueued = (state?: JobState) => state === 'queued' || state === 'unsearched';
  return new Set(jobIds.filter((jobId) => isQueued(states.get(jobId))));
}

/** Adds jobs that the queue has lost, after removing orphaned keys, which prevent adding their ids. */
export async function replaceOrphans<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<RejectedJob[]> {
  await backend.removeOrphans(queue, jobs.map(jobIdOf));
  return await addJobs(backend, queue, jobs);
}

/**
 * Adds jobs again whose id was retained as failed, because BullMQ ignored them when they were added. A job that has
 * ended meanwhile may be added twice, which its processing detects.
 */
export async function replaceFailed<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<void> {
  const failed = await backend.findFailed(queue, jobs.map(jobIdOf));
  const ended = jobs.filter((job) => failed.has(jobIdOf(job)));
  await Promise.all(ended.map((job) => queue.remove(jobIdOf(job))));
  if (ended.length > 0) await addJobs(backend, queue, ended);
}

/** Adds jobs for a user that may only add; see `Connector.publishByFunction`. */
export async function addAsAddOnlyUser<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<RejectedJob[]> {
  try {
    return await addHalving(backend, jobs, (part) => backend.publishByFunction(queue, part));
  } catch (error) {
    if (!backend.isForbidden(error)) throw error;
    return await addByScripts(backend, queue, jobs);
  }
}

/**
 * Adds jobs for a user with the ACL rules of 0.1.0, which permit scripts and not the function. BullMQ reads the existing
 * job with an id, which that user may not.
 */
async function addByScripts<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<RejectedJob[]> {
  const ids = jobs.map(jobIdOf);
  const [present, failed] = await Promise.all([
    backend.findExisting(queue, ids),
    backend.findFailed(queue, ids),
  ]);
  const added = jobs.flatMap((job, index) => {
    const jobId = ids[index] ?? '';
    if (failed.has(jobId)) return [{ ...job, opts: { ...job.opts, jobId: `${jobId}_${Date.now()}` } }];
    return present.has(jobId) ? [] : [job];
  });
  return await addJobs(backend, queue, added);
}
