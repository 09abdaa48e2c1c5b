import { batchedEvents } from '@runhook/contract';
import type { DeliveryQueue, EventQueue, PeekedJob } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';

export interface FullQueueDependencies {
  events: Pick<EventQueue, 'peek' | 'discard'>;
  deliveries: Pick<DeliveryQueue, 'shed'>;
  /** Does the work of an event's job; false when it has a malformed message. */
  work: (job: PeekedJob<unknown>) => Promise<boolean>;
  /** Ends it between two pages. */
  stopping: AbortSignal;
  logger: Pick<Logger, 'warn'>;
  onRelieved: (kind: 'event' | 'retry', count: number) => void;
}

const SHED_PAGE = 500;
const EVENT_PAGE = 50;

/**
 * Works a queue off that is so full that it hands out no jobs: a Redis at its `maxmemory`, filled by whatever. Jobs for
 * retries are let go of, since the record has them and the reconciler makes them again when they are due; then events
 * are done without the queue, the first in line first. A page of each at a time: once there is room, the workers go on
 * by themselves, and the next error of theirs calls this again.
 */
export class FullQueue {
  readonly #dependencies: FullQueueDependencies;
  /** Malformed messages: they stay for the queue to keep as failed, and must not stand before what can be done. */
  readonly #malformed = new Set<string>();
  #relieving: Promise<void> | null = null;

  constructor(dependencies: FullQueueDependencies) {
    this.#dependencies = dependencies;
  }

  /** Called with each error that says so; the first begins, the others find it at work. */
  relieve(): void {
    const { logger, stopping } = this.#dependencies;
    if (stopping.aborted) return;
    this.#relieving ??= this.#relieve()
      .catch((err: unknown) => logger.warn({ err }, 'the full queue could not be relieved'))
      .finally(() => {
        this.#relieving = null;
      });
  }

  /** Lets the page in hand end. */
  async close(): Promise<void> {
    await this.#relieving;
  }

  async #relieve(): Promise<void> {
    const { events, deliveries, work, logger, onRelieved } = this.#dependencies;
    const shed = await deliveries.shed(SHED_PAGE);
    onRelieved('retry', shed);
    const waiting = await events.peek(EVENT_PAGE + this.#malformed.size);
    const jobs = ofSoManyEvents(
      waiting.filter(({ id }) => !this.#malformed.has(id)),
      EVENT_PAGE,
    );
    const done = await Promise.allSettled(jobs.map(work));
    const ended: PeekedJob<unknown>[] = [];
    for (const [index, job] of jobs.entries()) {
      const result = done[index];
      if (result?.status !== 'fulfilled') continue;
      if (result.value) ended.push(job);
      else this.#malformed.add(job.id);
    }
    await events.discard(ended);
    const relieved = ended.reduce((sum, job) => sum + eventsOf(job), 0);
    onRelieved('event', relieved);
    logger.warn({ shed, events: relieved }, 'the queue is full: worked off without it');
  }
}

const eventsOf = ({ data }: PeekedJob<unknown>) => batchedEvents(data)?.length ?? 1;

/** The first of them, at most `count` events together: what finds no place at its endpoint waits until there is room. */
function ofSoManyEvents(jobs: readonly PeekedJob<unknown>[], count: number): PeekedJob<unknown>[] {
  let events = 0;
  return jobs.filter((job) => {
    const together = events + eventsOf(job);
    if (events > 0 && together > count) return false;
    events = together;
    return true;
  });
}
