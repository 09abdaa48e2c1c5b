import { type ShardMap, shardOf, shardsInUse } from '@runhook/contract';
import { callHalving } from '@runhook/runtime/halving';
import type { Queue } from 'bullmq';
import { type JobState, JobsRejectedError, type RejectedJob } from './backends/backend.ts';
import type { QueueBackend } from './backends/index.ts';
import type { QueueTelemetry } from './telemetry.ts';

/**
 * The queues of a name to add jobs to, one for each shard, each opened by its first call. BullMQ remembers a first
 * connection that failed for ever, so a queue that did not become ready is thrown away and the next call opens another.
 */
export interface Producer<Data> {
  /** Runs one bounded call on a shard, 0 when omitted. Throws `QueueUnavailableError` when the queue did not take it. */
  call<T>(work: (queue: Queue<Data>) => Promise<T>, shard?: number): Promise<T>;
  /** As `call`, on each shard that may have jobs, at the same time; the answers of the lowest first. */
  callEach<T>(work: (queue: Queue<Data>, shard: number) => Promise<T>): Promise<T[]>;
  /** As `callEach`, once where all shards are on one server. */
  callEachServer<T>(work: (queue: Queue<Data>) => Promise<T>): Promise<T[]>;
  /** As `callEach`, on those that may have jobs of these states now; the others have an answer of their own. */
  callHaving<T>(
    states: readonly string[],
    work: (queue: Queue<Data>, shard: number) => Promise<T>,
    otherwise: T,
  ): Promise<[shard: number, answer: T][]>;
  /** As `call`, on the shard of each item's account, with its items in their order. */
  callByShard<Item extends OfAccount>(
    items: readonly Item[],
    work: (queue: Queue<Data>, items: Item[]) => Promise<void>,
  ): Promise<void>;
  /** Whether there is more than one shard, as far as is known. */
  isDivided(): boolean;
  close(): Promise<void>;
}

/** An absent account has the shard of all that is not divided. */
export interface OfAccount {
  accountId?: number | undefined;
}

/** Asked when a queue is opened. */
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
        // Reads the certificates that the URL names.
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

  /** A queue that could not be opened, for whatever reason, is opened again by the next call. */
  function ready(shard: number): Promise<Queue<Data>> {
    const known = opened.get(shard);
    if (known !== undefined) return known;
    const opening = open(shard);
    opened.set(shard, opening);
    opening.catch(() => opened.delete(shard));
    return opening;
  }

  async function call<T>(work: (queue: Queue<Data>) => Promise<T>, shard = 0): Promise<T> {
    const queue = await ready(shard);
    return await backend.withinCallTimeout(() => work(queue));
  }

  const { shardMaps } = backend;
  const shardMap = (): ShardMap | Promise<ShardMap> =>
    shardMaps.lately(() => ready(0) as Promise<Queue>) ?? call((queue) => shardMaps.look(queue as Queue));

  async function callEach<T>(work: (queue: Queue<Data>, shard: number) => Promise<T>): Promise<T[]> {
    const shards = shardsInUse(await shardMap());
    return await all(shards.map((shard) => call((queue) => work(queue, shard), shard)));
  }

  return {
    call,
    callEach,
    callEachServer: async (work) => (backend.isSpread ? await callEach(work) : [await call(work)]),
    async callHaving(states, work, otherwise) {
      const shards = shardsInUse(await shardMap());
      const queues = await all(shards.map(ready));
      const having = await backend.withinCallTimeout(() => backend.having(queues, states));
      const ask = async (shard: number, queue: Queue<Data>) =>
        having.has(queue) ? await call(() => work(queue, shard), shard) : otherwise;
      const answers = await all(shards.map((shard, index) => ask(shard, queues[index] as Queue<Data>)));
      return shards.map((shard, index) => [shard, answers[index] as (typeof answers)[number]]);
    },
    async callByShard(items, work) {
      const map = await shardMap();
      const byShard = new Map<number, (typeof items)[number][]>();
      for (const item of items) {
        const shard = item.accountId === undefined ? 0 : shardOf(map, item.accountId);
        const those = byShard.get(shard);
        if (those) those.push(item);
        else byShard.set(shard, [item]);
      }
      await all(Array.from(byShard, ([shard, those]) => call((queue) => work(queue, those), shard)));
    },
    isDivided: () => shardsInUse(shardMaps.known).length > 1,
    async close() {
      const queues = await Promise.all(Array.from(opened.values(), (one) => one.catch(() => undefined)));
      await Promise.all(queues.map((queue) => queue?.close()));
    },
  };
}

/** Waits for calls to several shards, and throws the first error; if all errors are rejections, throws one with all rejected jobs. */
async function all<T>(calls: Promise<T>[]): Promise<T[]> {
  const faults = (await Promise.allSettled(calls)).flatMap((one) =>
    one.status === 'rejected' ? [one.reason as unknown] : [],
  );
  const rejections = faults.filter((fault) => fault instanceof JobsRejectedError);
  if (rejections.length > 0 && rejections.length === faults.length)
    throw new JobsRejectedError(rejections.flatMap(({ rejected }) => rejected));
  for (const fault of faults) if (!(fault instanceof JobsRejectedError)) throw fault;
  return await Promise.all(calls);
}

export type NewJob<Data> = Parameters<Queue<Data>['addBulk']>[0][number];

/**
 * Adds jobs in order; one whose id the queue has already adds nothing. When it throws, some may have been added: whoever
 * tries again brings the same ids. If the server rejects the data of a job, the call is halved until that job is isolated.
 * @returns the jobs that were rejected; all others were added
 */
export async function addJobs<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<RejectedJob[]> {
  // Each added by itself would be a span of its own, under the active trace instead of the job's.
  const isTraced = queue.opts.telemetry !== undefined;
  const add = async (part: readonly NewJob<Data>[]) => {
    if (part.length > backend.addedSinglyMax || isTraced) await queue.addBulk([...part]);
    else for (const { name, data, opts } of part) await queue.add(name, data, opts);
  };
  const isFault = (error: unknown) => error instanceof TypeError || backend.isJobFault(error);
  const rejected = await callHalving(jobs, add, isFault);
  return rejected.map(({ item, error }) => ({ jobId: jobIdOf(item), error }));
}

export const jobIdOf = <Data>({ opts }: NewJob<Data>) => opts?.jobId ?? '';

/** Throws {@link JobsRejectedError} if there are any. */
export function requireNone(rejected: readonly RejectedJob[]): void {
  if (rejected.length > 0) throw new JobsRejectedError(rejected);
}

/** A thousand lanes that are woken must not stand before everybody else's calls. */
const BULK_SIZE = 100;

/**
 * As {@link addJobs}, each on the shard of its account, in calls that each have the time of one. Throws
 * {@link JobsRejectedError} once all others are added.
 */
export async function addInBulks<Data, Item extends OfAccount>(
  backend: QueueBackend,
  producer: Producer<Data>,
  items: readonly Item[],
  jobOf: (item: Item) => NewJob<Data>,
  add: typeof addJobs = addJobs,
): Promise<void> {
  const rejected: RejectedJob[] = [];
  for (let start = 0; start < items.length; start += BULK_SIZE) {
    const bulk = items.slice(start, start + BULK_SIZE);
    await producer.callByShard(bulk, async (queue, those) => {
      rejected.push(...(await add(backend, queue, those.map(jobOf))));
    });
  }
  requireNone(rejected);
}

/**
 * Which items any shard holds, by their ids. The shard of an item's account is asked first, and all of them for what is not there:
 * it may have been added before the account had this shard.
 */
export async function heldAnywhere<Data, Item extends OfAccount>(
  producer: Producer<Data>,
  items: readonly Item[],
  idOf: (item: Item) => string,
  heldIn: (queue: Queue<Data>, items: readonly Item[]) => Promise<ReadonlySet<string>>,
): Promise<Set<string>> {
  const held = new Set<string>();
  const note = (ids: ReadonlySet<string>) => {
    for (const id of ids) held.add(id);
  };
  await producer.callByShard(items, async (queue, those) => note(await heldIn(queue, those)));
  const missing = items.filter((item) => !held.has(idOf(item)));
  if (missing.length > 0 && producer.isDivided())
    await producer.callEach(async (queue) => note(await heldIn(queue, missing)));
  return held;
}

/** What any server of the shards does with what it holds once it is full; null when all of them keep everything. */
export async function policyOfAny<Data>(
  backend: QueueBackend,
  producer: Producer<Data>,
): Promise<string | null> {
  const policies = await producer.callEachServer((queue) => backend.evictionPolicy(queue));
  return policies.find((policy) => policy !== null) ?? null;
}

const COUNTED = ['wait', 'active', 'delayed', 'prioritized', 'failed', 'completed', 'waiting-children'];
const NOTHING = { waiting: 0, active: 0, delayed: 0, prioritized: 0, failed: 0, completed: 0 };

/** Jobs by state, of all shards together. */
export async function countsOf<Data>(producer: Producer<Data>): Promise<Record<string, number>> {
  const counted = await producer.callHaving<Record<string, number>>(
    COUNTED,
    (queue) => queue.getJobCounts(),
    NOTHING,
  );
  return summed(counted.map(([, counts]) => counts));
}

export function summed(counts: readonly Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const one of counts)
    for (const [state, count] of Object.entries(one)) sums[state] = (sums[state] ?? 0) + count;
  return sums;
}

/**
 * Which of the job ids a worker will take or has taken. An ended job, which is retained for operators, is not among them, and
 * neither is an orphaned one. A job that was not searched for counts as queued.
 */
export async function heldBy<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobIds: readonly string[],
): Promise<Set<string>> {
  const states = await backend.jobStates(queue, jobIds);
  const isQueued = (state?: JobState) => state === 'queued' || state === 'unsearched';
  return new Set(jobIds.filter((jobId) => isQueued(states.get(jobId))));
}

/** Adds jobs that the queue has lost, after removing orphaned keys, with which their ids could not be added. */
export async function addInsteadOfOrphans<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<RejectedJob[]> {
  await backend.removeOrphans(queue, jobs.map(jobIdOf));
  return await addJobs(backend, queue, jobs);
}

/**
 * For jobs that were just added, where any is kept as failed: one with its id would have swallowed the new one. An id
 * that is done meanwhile is added once more, which its work finds out.
 */
export async function addInsteadOfFailed<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<void> {
  const failed = await backend.failedAmong(queue, jobs.map(jobIdOf));
  const ended = jobs.filter((job) => failed.has(jobIdOf(job)));
  await Promise.all(ended.map((job) => queue.remove(jobIdOf(job))));
  if (ended.length > 0) await addJobs(backend, queue, ended);
}

/**
 * For jobs that a user who may only add could not add, since BullMQ reads the job whose id is there already: those that there
 * are not. One that is kept as failed stays, and is added under an id that goes on from its own.
 */
export async function addAsGuest<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<RejectedJob[]> {
  const ids = jobs.map(jobIdOf);
  const [present, failed] = await Promise.all([backend.present(queue, ids), backend.failedAmong(queue, ids)]);
  const added = jobs.flatMap((job, index) => {
    const jobId = ids[index] ?? '';
    if (failed.has(jobId)) return [{ ...job, opts: { ...job.opts, jobId: `${jobId}_${Date.now()}` } }];
    return present.has(jobId) ? [] : [job];
  });
  return await addJobs(backend, queue, added);
}
