import { JOB_RUN_EVENTS, type PublishedEvent } from '@runhook/contract';
import type { JobsOptions } from 'bullmq';
import { heldBy } from './held-by.ts';
import { createProducer } from './producer.ts';
import type { QueueBackend } from './queue-backend.ts';

/** Bulk calls of this size stay under 50 ms on Redis. */
const BULK_SIZE = 500;

/** An event with its identity settled, ready for the queue. */
export type IdentifiedEvent = PublishedEvent & { eventId: string };

/** The producer's side of `job-run-events`. */
export interface EventQueue {
  /** Adds events in order; one whose id is already queued adds nothing. Throws `QueueUnavailableError`. */
  add(events: readonly IdentifiedEvent[]): Promise<void>;
  /** Which of the events the queue holds, in whatever state. */
  holds(eventIds: readonly string[]): Promise<Set<string>>;
  /** Jobs by state: waiting, active, delayed, and failed, where malformed messages are kept. */
  counts(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

const JOB_OPTIONS: JobsOptions = { removeOnComplete: true };

export function openEventQueue(backend: QueueBackend, onError: (error: Error) => void): EventQueue {
  const producer = createProducer<PublishedEvent>(backend, JOB_RUN_EVENTS, onError);
  return {
    async add(events) {
      for (let start = 0; start < events.length; start += BULK_SIZE) {
        const jobs = events.slice(start, start + BULK_SIZE).map((event) => ({
          name: event.eventType,
          data: event,
          opts: { ...JOB_OPTIONS, jobId: event.eventId },
        }));
        await producer.call((queue) => queue.addBulk(jobs));
      }
    },
    holds: (eventIds) => producer.call((queue) => heldBy(queue, eventIds)),
    counts: () => producer.call((queue) => queue.getJobCounts()),
    close: () => producer.close(),
  };
}
