import type { Queue } from 'bullmq';
import type { Producer } from './producer.ts';

/** The job that is taken next. */
export interface JobInLine {
  id: string;
  /** When the one that waits longest was added, in milliseconds since the epoch. */
  addedAtMs: number;
  /** Somebody paused the queue: no worker may take it. */
  isPaused: boolean;
}

const IN_LINE = ['wait', 'prioritized'];

/** Of each shard that may have jobs, what is first in line there; null when none waits. */
export async function firstsInLine<Data>(producer: Producer<Data>): Promise<Map<number, JobInLine | null>> {
  return new Map(await producer.callHaving<JobInLine | null>(IN_LINE, firstInLine, null));
}

/** Of all shards, what waits longest. */
export async function firstOfAll<Data>(producer: Producer<Data>): Promise<JobInLine | null> {
  let oldest: JobInLine | null = null;
  for (const first of (await firstsInLine(producer)).values())
    if (first !== null && (oldest === null || first.addedAtMs < oldest.addedAtMs)) oldest = first;
  return oldest;
}

/** Two jobs are read, however many wait: the next one, and the next of those that were put behind the others. */
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
