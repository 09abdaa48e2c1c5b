import { JOB_RUN_EVENTS, SHARDS_MAX, shardsInUse, WEBHOOK_DELIVERIES } from '@runhook/contract';
import type { Job, Queue } from 'bullmq';
import type { QueueBackend, QueueBackendName } from './backends/index.ts';
import { readNextJob } from './next-job.ts';
import { createProducer, findEvictionPolicy, type Producer, sumCounts } from './producer.ts';

/** Queues whose jobs serve endpoints. Maintenance jobs are rescheduled automatically. */
const QUEUES = [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES] as const;

export interface QueueStats {
  backend: QueueBackendName;
  /** Share of memory in use of the fullest server; 0 where there is no limit or it is not reported. */
  usedShare: number;
  /** Null when no server evicts jobs, as required. */
  evictionPolicy: string | null;
  queues: {
    name: string;
    /** Jobs by state; a job of `job-run-events` may have up to 20 events. */
    counts: JobCounts;
    /** Time at which the longest waiting job was added, in milliseconds since the epoch; null when none waits. */
    oldestAddedAtMs: number | null;
    isPaused: boolean;
    /** Shards that may have jobs. */
    shards: { shard: number; isDraining: boolean; counts: JobCounts }[];
  }[];
}

type JobCounts = Record<'waiting' | 'active' | 'delayed' | 'failed', number>;

/** A failed job that is retained for inspection: a message that is not an event. */
export interface FailedJob {
  queue: string;
  id: string;
  name: string;
  reason: string;
  /** Milliseconds since the epoch. */
  failedAtMs: number;
  data: unknown;
  /** Whether only the beginning of the data was retained, so that the job cannot be retried. */
  isTruncated: boolean;
}

/** Operations on the queue for operators, from outside the services. */
export interface QueueAdmin {
  stats(): Promise<QueueStats>;
  /** Returns failed jobs, newest first. */
  failed(limit: number): Promise<FailedJob[]>;
  /** Queues failed jobs of the newest 1,000 again, all when `ids` is null. `remaining`: those that could not be. */
  retry(ids: readonly string[] | null): Promise<{ retried: string[]; remaining: string[] }>;
  close(): Promise<void>;
}

/** All calls throw `QueueUnavailableError`. @param onError called with connection errors between calls */
export function openQueueAdmin(backend: QueueBackend, onError: (error: Error) => void): QueueAdmin {
  const producers = QUEUES.map((name) => ({
    name,
    producer: createProducer<unknown>(backend, name, onError),
  }));
  const [{ producer: first }] = producers as [(typeof producers)[number]];

  /** Returns the shards that are no longer served and retain failed jobs. */
  async function findUnservedShards(): Promise<number[]> {
    const { store, cached } = backend.shardMaps;
    const inUse = shardsInUse(cached);
    const others = Array.from({ length: SHARDS_MAX }, (_, shard) => shard).filter(
      (shard) => !inUse.includes(shard),
    );
    const withFailed = await first.call(async (queue) => store?.withJobs(queue, others, ['failed']));
    return [...(withFailed ?? [])];
  }

  async function readFailed(limit: number): Promise<Job<unknown>[]> {
    const read = (queue: Queue<unknown>) => queue.getFailed(0, limit - 1);
    const inServedShards = await Promise.all(producers.map(({ producer }) => producer.callEach(read)));
    const unserved = await findUnservedShards();
    const inUnservedShards = await Promise.all(
      producers.flatMap(({ producer }) => unserved.map((shard) => producer.call(read, shard))),
    );
    // Null stands for a job that was removed meanwhile.
    const jobs = [...inServedShards.flat(), ...inUnservedShards]
      .flat()
      .filter((job) => job?.id !== undefined);
    return jobs.sort((one, other) => (other.finishedOn ?? 0) - (one.finishedOn ?? 0)).slice(0, limit);
  }

  async function readStats(name: string, producer: Producer<unknown>): Promise<QueueStats['queues'][number]> {
    const shardStats = await producer.callEach(async (queue, shard) => {
      const [counts, next, isPaused] = await Promise.all([
        queue.getJobCounts(),
        readNextJob(queue),
        queue.isPaused(),
      ]);
      return { shard, counts: toJobCounts(counts), addedAtMs: next?.addedAtMs ?? null, isPaused };
    });
    const added = shardStats.flatMap(({ addedAtMs }) => (addedAtMs === null ? [] : [addedAtMs]));
    const draining = new Set(backend.shardMaps.cached.draining);
    return {
      name,
      counts: toJobCounts(sumCounts(shardStats.map(({ counts }) => counts))),
      oldestAddedAtMs: added.length === 0 ? null : Math.min(...added),
      isPaused: shardStats.some(({ isPaused }) => isPaused),
      shards: shardStats.map(({ shard, counts }) => ({ shard, isDraining: draining.has(shard), counts })),
    };
  }

  return {
    async stats() {
      const [usedShares, evictionPolicy, ...queues] = await Promise.all([
        first.callEachServer((queue) => backend.usedShare(queue)),
        findEvictionPolicy(backend, first),
        ...producers.map(({ name, producer }) => readStats(name, producer)),
      ]);
      return { backend: backend.name, usedShare: Math.max(...usedShares), evictionPolicy, queues };
    },
    failed: async (limit) => (await readFailed(limit)).map(toFailedJob),
    async retry(ids) {
      const retried: string[] = [];
      const remaining = new Set(ids ?? []);
      for (const job of await readFailed(RETRIED_MAX)) {
        const id = job.id as string;
        if (ids !== null && !remaining.has(id)) continue;
        remaining.delete(id);
        if (toFailedJob(job).isTruncated) remaining.add(id);
        else {
          await backend.withinCallTimeout(() => job.retry('failed', { resetAttemptsMade: true }));
          retried.push(id);
        }
      }
      return { retried, remaining: [...remaining] };
    },
    async close() {
      await Promise.all(producers.map(({ producer }) => producer.close()));
    },
  };
}

function toJobCounts(counts: Record<string, number>): JobCounts {
  const { waiting = 0, prioritized = 0, paused = 0, active = 0, delayed = 0, failed = 0 } = counts;
  return { waiting: waiting + prioritized + paused, active, delayed, failed };
}

/** Maximum number of failed jobs that one call retries, the newest ones. */
const RETRIED_MAX = 1_000;

function toFailedJob(job: Job<unknown>): FailedJob {
  const { id = '', name, failedReason = '', finishedOn = 0, data, queueName } = job;
  const isTruncated =
    typeof data === 'object' && data !== null && 'characters' in data && 'beginning' in data;
  return { queue: queueName, id, name, reason: failedReason, failedAtMs: finishedOn, data, isTruncated };
}
