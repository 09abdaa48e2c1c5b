import type { Queue } from 'bullmq';
import type { Producer } from './producer.ts';

/** The waiting job that a worker takes next. */
export interface JobInLine {
  id: string;
  /** Time at which the longest waiting job was added, in milliseconds since the epoch. */
  addedAtMs: number;
  /** Whether an operator paused the queue, so that no worker may take the job. */
  isPaused: boolean;
}

const IN_LINE = ['wait', 'prioritized'];

/** Returns the next job of each shard that may have jobs; null when none waits. */
export async function firstsInLine<Data>(producer: Producer<Data>): Promise<Map<number, JobInLine | null>> {
  return new Map(await producer.callHaving<JobInLine | null>(IN_LINE, firstInLine, null));
}

/** Returns the job that has waited longest on any shard. */
export async function firstOfAll<Data>(producer: Producer<Data>): Promise<JobInLine | null> {
  let oldest: JobInLine | null = null;
  for (const first of (await firstsInLine(producer)).values())
    if (first !== null && (oldest === null || first.addedAtMs < oldest.addedAtMs)) oldest = first;
  return oldest;
}

/** Reads two jobs, however many wait: the next one of normal priority, and the next one of low priority. */
export async function firstInLine<Data>(queue: Queue<Data>): Promise<JobInLine | null> {
  const [[first], [behind], isPaused] = await Promise.all([
    queue.getJobs(['waiting'], 0, 0, true),
    queue.getJobs(['prioritized'], 0, 0, true),
    queue.isPaused(),
  ]);
  const next = first ?? behind;
  if (next?.id === undefined) return null;
  const addedAtMs = Math.min(next.timestamp, behind?.timestamp ?? next.timestamp);
  return { id: next.id, addedAtMs, isPaused };
}
