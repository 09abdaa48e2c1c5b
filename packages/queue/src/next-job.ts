import type { Queue } from 'bullmq';
import type { Producer } from './producer.ts';

/** The waiting job that a worker takes next. */
export interface NextJob {
  id: string;
  /** Time at which the longest waiting job was added, in milliseconds since the epoch. */
  addedAtMs: number;
  /** Whether an operator paused the queue, so that no worker may take the job. */
  isPaused: boolean;
}

const WAITING_STATES = ['wait', 'prioritized'];

/** Returns the next job of each shard that may have jobs; null when none waits. */
export async function readNextJobs<Data>(producer: Producer<Data>): Promise<Map<number, NextJob | null>> {
  return new Map(await producer.callWithJobs<NextJob | null>(WAITING_STATES, readNextJob, null));
}

/** Returns the next job of the shard on which a job has waited longest. */
export async function findLongestWaitingJob<Data>(producer: Producer<Data>): Promise<NextJob | null> {
  let oldest: NextJob | null = null;
  for (const candidate of (await readNextJobs(producer)).values())
    if (candidate !== null && (oldest === null || candidate.addedAtMs < oldest.addedAtMs)) oldest = candidate;
  return oldest;
}

/** Reads two jobs, however many wait: the next one of normal priority, and the next one of low priority. */
export async function readNextJob<Data>(queue: Queue<Data>): Promise<NextJob | null> {
  const [[normal], [lowPriority], isPaused] = await Promise.all([
    queue.getJobs(['waiting'], 0, 0, true),
    queue.getJobs(['prioritized'], 0, 0, true),
    queue.isPaused(),
  ]);
  const next = normal ?? lowPriority;
  if (next?.id === undefined) return null;
  const addedAtMs = Math.min(next.timestamp, lowPriority?.timestamp ?? next.timestamp);
  return { id: next.id, addedAtMs, isPaused };
}
