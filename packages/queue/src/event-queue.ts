import { JOB_RUN_EVENTS, type PublishedEvent } from '@runhook/contract';
import type { JobsOptions, Queue } from 'bullmq';
import { LRUCache } from 'lru-cache';
import type { PeekedJob } from './backends/backend.ts';
import { type QueueBackend, QueueFullError } from './backends/index.ts';
import {
  addInsteadOfFailed,
  addJobs,
  createProducer,
  firstInLine,
  heldBy,
  type JobInLine,
  type TelemetrySource,
} from './producer.ts';

/** Bulk calls of this size stay under 50 ms on Redis. */
const BULK_SIZE = 500;

/** An event with its identity settled, ready for the queue. */
export type IdentifiedEvent = PublishedEvent & { eventId: string };

/** The producer's side of `job-run-events`. */
export interface EventQueue {
  /**
   * Adds events in order; one whose id is already queued adds nothing. Of an account that sends more than its burst
   * limit the rest goes behind everybody else's. Throws `QueueUnavailableError`, and `QueueFullError` while the server
   * has little room left: what is in the queue needs some to leave it.
   * @param traceContexts of each event, where a call adds events of many traces; the active one when omitted
   */
  add(events: readonly IdentifiedEvent[], traceContexts?: readonly (string | null)[]): Promise<void>;
  /** Events that wait, the first in line first, as a queue that is full can still tell; see `Connector.peek`. */
  peek(count: number): Promise<PeekedJob<PublishedEvent>[]>;
  /** Removes waiting events that were dealt with otherwise. */
  discard(jobIds: readonly string[]): Promise<void>;
  /** Which of the events the queue will still work on; one that is kept as failed is none. */
  holds(eventIds: readonly string[]): Promise<Set<string>>;
  /** Jobs by state: waiting, active, delayed, and failed, where malformed messages are kept. */
  counts(): Promise<Record<string, number>>;
  /** The waiting job that a worker would take next; null when none waits. */
  firstInLine(): Promise<JobInLine | null>;
  close(): Promise<void>;
}

const JOB_OPTIONS: JobsOptions = { removeOnComplete: true };
/** BullMQ takes jobs without a priority before any that has one. */
const BEHIND: JobsOptions = { ...JOB_OPTIONS, priority: 1 };

export function openEventQueue(
  backend: QueueBackend,
  onError: (error: Error) => void,
  telemetry?: TelemetrySource,
  burstLimiter: BurstLimiter = createBurstLimiter(),
): EventQueue {
  const producer = createProducer<PublishedEvent>(backend, JOB_RUN_EVENTS, onError, telemetry);
  const room = new Room(backend);
  return {
    async add(events, traceContexts) {
      for (let start = 0; start < events.length; start += BULK_SIZE) {
        const jobs = events.slice(start, start + BULK_SIZE).map((event, index) => {
          const metadata = traceContexts?.[start + index];
          const options = burstLimiter.take(event.accountId) ? JOB_OPTIONS : BEHIND;
          return {
            name: event.eventType,
            data: event,
            opts: { ...options, jobId: event.eventId, ...(metadata && { telemetry: { metadata } }) },
          };
        });
        await producer.call(async (queue) => {
          await room.require(queue);
          const [hasFailed] = await Promise.all([backend.hasFailed(queue), addJobs(backend, queue, jobs)]);
          if (hasFailed) await addInsteadOfFailed(backend, queue, jobs);
        });
      }
    },
    peek: (count) => producer.call((queue) => backend.peek(queue, count)),
    discard: (jobIds) => producer.call((queue) => backend.discard(queue, jobIds)),
    holds: (eventIds) => producer.call((queue) => heldBy(backend, queue, eventIds)),
    async counts() {
      const { prioritized = 0, ...counts } = await producer.call((queue) => queue.getJobCounts());
      return { ...counts, waiting: (counts.waiting ?? 0) + prioritized };
    },
    firstInLine: () => producer.call(firstInLine),
    close: () => producer.close(),
  };
}

/**
 * How many events an account may have put in line at once, so that a burst of one account does not stand in front of
 * everybody's events. What is beyond goes in behind: taken when nothing else waits.
 */
export interface BurstLimiter {
  /** Whether the account's next event is within its burst limit; counts it. */
  take(accountId: number): boolean;
}

/** A dispatcher works this off in less than a second. */
const BURST_EVENTS = 1_000;
const EVENTS_PER_SECOND = 500;
const ACCOUNTS_MAX = 10_000;

/**
 * A token bucket for each account, in each process that puts events in line. An account that is not remembered has a
 * full bucket, which those in use longest ago get back when there are too many to remember.
 */
export function createBurstLimiter(nowMs: () => number = () => performance.now()): BurstLimiter {
  const buckets = new LRUCache<number, { tokens: number; atMs: number }>({ max: ACCOUNTS_MAX });

  return {
    take(accountId) {
      const now = nowMs();
      const former = buckets.get(accountId);
      const refilled = former
        ? former.tokens + ((now - former.atMs) / 1_000) * EVENTS_PER_SECOND
        : BURST_EVENTS;
      const tokens = Math.min(BURST_EVENTS, refilled);
      const isWithin = tokens >= 1;
      buckets.set(accountId, { tokens: isWithin ? tokens - 1 : tokens, atMs: now });
      return isWithin;
    },
  };
}

/** Above this share of its memory a queue takes no more events. */
const HIGH_WATER = 0.85;
const LOOK_EVERY_MS = 1_000;

/** What the server uses, asked for once a second. */
class Room {
  readonly #backend: QueueBackend;
  #usedShare = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(backend: QueueBackend) {
    this.#backend = backend;
  }

  /** Throws `QueueFullError` when there is little left. */
  async require(queue: Queue<PublishedEvent>): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs >= LOOK_EVERY_MS) {
      this.#lookedAtMs = nowMs;
      this.#usedShare = await this.#backend.usedShare(queue);
    }
    if (this.#usedShare <= HIGH_WATER) return;
    const percent = Math.floor(this.#usedShare * 100);
    throw new QueueFullError(`The queue takes no more: its server uses ${percent} % of its memory.`);
  }
}
