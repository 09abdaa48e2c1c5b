import { type EventKey, eventJobId } from '@runhook/contract';
import type { Queue } from 'bullmq';
import type { QueueBackend } from './backends/index.ts';
import { retriedEvents } from './event-sample.ts';
import { findQueuedJobs } from './producer.ts';

/** An event that the queue should have. */
export interface EventLookup extends EventKey {
  /** Earliest time at which the event may have been added to the queue, in milliseconds since the epoch. */
  sinceMs: number;
}

/** Maximum time from an event's commit to its job while the queue is available. Later the reconciler checks the event. */
export const ENQUEUE_WINDOW_MS = 5_000;

/** Number of jobs that are read of each state: more than one, because the oldest may end while it is read. */
const OLDEST_READ = 10;
/** Delayed jobs whose events are read. While there are more, no event counts as lost. */
const DELAYED_READ_MAX = 1_000;

/**
 * Returns the events that have a job which waits, is active or is delayed, by {@link eventJobId}. An event without a
 * separate job may share one with others. It counts as queued while the oldest job that waits or is active was added
 * before the event, or at most {@link ENQUEUE_WINDOW_MS} after it. Jobs that are delayed after a fault may be of any
 * age, so their events are read.
 */
export async function queuedEvents<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  events: readonly EventLookup[],
): Promise<Set<string>> {
  // Foreign publishers may use the event's id as job id.
  const ids = events.flatMap((event) => [eventJobId(event), event.eventId]);
  // Read before and after the other states: meanwhile a job may become due, or be delayed after a fault.
  const retriedBefore = await retriedEvents(queue, DELAYED_READ_MAX);
  const [jobs, oldestUnfinishedMs] = await Promise.all([
    findQueuedJobs(backend, queue, ids),
    oldestUnfinished(queue),
  ]);
  const retriedAfter = await retriedEvents(queue, DELAYED_READ_MAX);
  const mayBeInSharedJob = (sinceMs: number) =>
    oldestUnfinishedMs !== null && sinceMs + ENQUEUE_WINDOW_MS >= oldestUnfinishedMs;
  const isRetried = (id: string) =>
    [retriedBefore, retriedAfter].some((retried) => retried === null || retried.has(id));
  const isQueued = (event: EventLookup) =>
    jobs.has(eventJobId(event)) ||
    jobs.has(event.eventId) ||
    mayBeInSharedJob(event.sinceMs) ||
    isRetried(eventJobId(event));
  return new Set(events.filter(isQueued).map(eventJobId));
}

/**
 * Returns when the oldest job that waits or is active was added, in milliseconds since the epoch; null if none is. The
 * states are read in the order in which a job passes them: a job that a worker takes meanwhile is seen in one of them.
 */
async function oldestUnfinished<Data>(queue: Queue<Data>): Promise<number | null> {
  let oldestMs: number | null = null;
  for (const state of ['waiting', 'prioritized', 'active'] as const) {
    const jobs = await queue.getJobs([state], 0, OLDEST_READ - 1, true);
    for (const { timestamp } of jobs) oldestMs = Math.min(oldestMs ?? timestamp, timestamp);
  }
  return oldestMs;
}
