import { JOB_RUN_EVENTS, WEBHOOK_DELIVERIES } from '@runhook/contract';
import type { Job } from 'bullmq';
import type { QueueBackend, QueueBackendName } from './backends/index.ts';
import { createProducer, firstInLine } from './producer.ts';

/** The queues whose jobs are work for endpoints; upkeep's come again by themselves. */
const QUEUES = [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES] as const;

export interface QueueStats {
  backend: QueueBackendName;
  /** Of the room that the server may use; 0 where it has no bound or does not tell. */
  usedShare: number;
  /** Null when it keeps everything, as it should. */
  evictionPolicy: string | null;
  queues: {
    name: string;
    /** Jobs by state; one of `job-run-events` may have up to 20 events. */
    counts: Record<'waiting' | 'active' | 'delayed' | 'failed', number>;
    /** When the job that waits longest was added, in milliseconds since the epoch; null when none waits. */
    oldestAddedAtMs: number | null;
    isPaused: boolean;
  }[];
}

/** A job that was given up and is kept to be seen: a message that is no event. */
export interface FailedJob {
  queue: string;
  id: string;
  name: string;
  reason: string;
  /** Milliseconds since the epoch. */
  failedAtMs: number;
  data: unknown;
  /** Only the beginning of it was kept: it cannot be tried again. */
  isShortened: boolean;
}

/** What an operator may ask of the queue, and do to it, from outside the services. */
export interface QueueDesk {
  stats(): Promise<QueueStats>;
  /** The newest first. */
  failed(limit: number): Promise<FailedJob[]>;
  /** Puts jobs that failed back in line, all when `ids` is null; answers which, and which could not be. */
  retry(ids: readonly string[] | null): Promise<{ retried: string[]; left: string[] }>;
  close(): Promise<void>;
}

/** All calls throw `QueueUnavailableError`. @param onError told of connection trouble between calls */
export function openQueueDesk(backend: QueueBackend, onError: (error: Error) => void): QueueDesk {
  const producers = QUEUES.map((name) => ({
    name,
    producer: createProducer<unknown>(backend, name, onError),
  }));
  const [{ producer: first }] = producers as [(typeof producers)[number]];

  async function failedOf(limit: number): Promise<Job<unknown>[]> {
    const lists = await Promise.all(
      producers.map(({ producer }) => producer.call((queue) => queue.getFailed(0, limit - 1))),
    );
    // Null stands for a job that went meanwhile.
    const jobs = lists.flat().filter((job) => job?.id !== undefined);
    return jobs.sort((one, other) => (other.finishedOn ?? 0) - (one.finishedOn ?? 0)).slice(0, limit);
  }

  return {
    async stats() {
      const queues = producers.map(({ name, producer }) =>
        producer.call(async (queue) => {
          const [counts, next, isPaused] = await Promise.all([
            queue.getJobCounts(),
            firstInLine(queue),
            queue.isPaused(),
          ]);
          const { waiting = 0, prioritized = 0, paused = 0, active = 0, delayed = 0, failed = 0 } = counts;
          return {
            name,
            counts: { waiting: waiting + prioritized + paused, active, delayed, failed },
            oldestAddedAtMs: next?.addedAtMs ?? null,
            isPaused,
          };
        }),
      );
      const [usedShare, evictionPolicy, ...counted] = await Promise.all([
        first.call((queue) => backend.usedShare(queue)),
        first.call((queue) => backend.evictionPolicy(queue)),
        ...queues,
      ]);
      return { backend: backend.name, usedShare, evictionPolicy, queues: counted };
    },
    failed: async (limit) => (await failedOf(limit)).map(failedJob),
    async retry(ids) {
      const retried: string[] = [];
      const left = new Set(ids ?? []);
      for (const job of await failedOf(RETRIED_MAX)) {
        const id = job.id as string;
        if (ids !== null && !left.has(id)) continue;
        left.delete(id);
        if (failedJob(job).isShortened) left.add(id);
        else {
          await backend.withinCallTimeout(() => job.retry('failed', { resetAttemptsMade: true }));
          retried.push(id);
        }
      }
      return { retried, left: [...left] };
    },
    async close() {
      await Promise.all(producers.map(({ producer }) => producer.close()));
    },
  };
}

/** As many are kept. */
const RETRIED_MAX = 1_000;

function failedJob(job: Job<unknown>): FailedJob {
  const { id = '', name, failedReason = '', finishedOn = 0, data, queueName } = job;
  const isShortened =
    typeof data === 'object' && data !== null && 'characters' in data && 'beginning' in data;
  return { queue: queueName, id, name, reason: failedReason, failedAtMs: finishedOn, data, isShortened };
}
