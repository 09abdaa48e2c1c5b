import type { Queue } from 'bullmq';

/** The job that is taken next. */
export interface JobInLine {
  id: string;
  /** When the one that waits longest was added, in milliseconds since the epoch. */
  addedAtMs: number;
  /** Somebody paused the queue: no worker may take it. */
  isPaused: boolean;
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
