import { batchedEvents } from '@runhook/contract';
import type { DeliveryQueue, EventQueue, PeekedJob } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';

export interface FullQueueDependencies {
  events: Pick<EventQueue, 'peek' | 'discard'>;
  deliveries: Pick<DeliveryQueue, 'shed'>;
  /** Processes the job of an event. Returns false if it has a malformed message. */
  work: (job: PeekedJob<unknown>) => Promise<boolean>;
  /** Stops the work between two pages. */
  stopping: AbortSignal;
  logger: Pick<Logger, 'warn'>;
  onRelieved: (kind: 'event' | 'retry', count: number) => void;
}

const SHED_PAGE = 500;
const EVENT_PAGE = 50;

/**
 * Drains a queue that returns no jobs because it is full: a Redis at its `maxmemory`. Removes jobs of retries, which
 * the reconciler adds again from the record when they are due, and processes events without the queue, the next one
 * first. One call handles one page of each: once there is memory, the workers continue, and their next error calls this
 * again.
 */
export class FullQueue {
  readonly #dependencies: FullQueueDependencies;
  /** Malformed messages. They remain for the workers to fail, and must not block the jobs behind them. */
  readonly #malformed = new Set<string>();
  #relieving: Promise<void> | null = null;

  constructor(dependencies: FullQueueDependencies) {
    this.#dependencies = dependencies;
  }

  /** Called with each error of a full queue. Concurrent calls share one run. */
  relieve(): void {
    const { logger, stopping } = this.#dependencies;
    if (stopping.aborted) return;
    this.#relieving ??= this.#relieve()
      .catch((err: unknown) => logger.warn({ err }, 'the full queue could not be relieved'))
      .finally(() => {
        this.#relieving = null;
      });
  }

  /** Waits for the current page to end. */
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

/** Returns jobs with at most `count` events together, since deliveries without a slot wait until the queue has memory. */
function ofSoManyEvents(jobs: readonly PeekedJob<unknown>[], count: number): PeekedJob<unknown>[] {
  let events = 0;
  return jobs.filter((job) => {
    const together = events + eventsOf(job);
    if (events > 0 && together > count) return false;
    events = together;
    return true;
  });
}
