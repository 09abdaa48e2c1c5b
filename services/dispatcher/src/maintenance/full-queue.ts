import { batchedEvents } from '@runhook/contract';
import type { DeliveryQueue, EventQueue, PeekedJob } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';

export interface FullQueueDependencies {
  events: Pick<EventQueue, 'peek' | 'discard'>;
  deliveries: Pick<DeliveryQueue, 'evictDelayed'>;
  /** Processes the job of an event. Returns false if it has a malformed message. */
  work: (job: PeekedJob<unknown>) => Promise<boolean>;
  /** Stops the work between two pages. */
  stopping: AbortSignal;
  logger: Pick<Logger, 'warn'>;
  onDrained: (kind: 'event' | 'retry', count: number) => void;
}

const EVICTED_PAGE = 500;
const EVENT_PAGE = 50;

/**
 * Drains a queue that returns no jobs because it is full: a Redis at its `maxmemory`. Removes delayed jobs of retries
 * and lanes, which maintenance adds again from the record, and processes events without the queue, the next one
 * first. One call handles one page of each: once there is memory, the workers continue, and their next error calls this
 * again.
 */
export class FullQueue {
  readonly #dependencies: FullQueueDependencies;
  /** Ids of jobs with malformed messages. They remain for the workers to fail, and must not block jobs behind them. */
  readonly #malformed = new Set<string>();
  #draining: Promise<void> | null = null;

  constructor(dependencies: FullQueueDependencies) {
    this.#dependencies = dependencies;
  }

  /** Called with each error of a full queue. Concurrent calls share one run. */
  drainWhenFull(): void {
    const { logger, stopping } = this.#dependencies;
    if (stopping.aborted) return;
    this.#draining ??= this.#drainPage()
      .catch((err: unknown) => logger.warn({ err }, 'the full queue could not be drained'))
      .finally(() => {
        this.#draining = null;
      });
  }

  /** Waits for the current page to end. */
  async close(): Promise<void> {
    await this.#draining;
  }

  async #drainPage(): Promise<void> {
    const { events, deliveries, work, logger, onDrained } = this.#dependencies;
    const evicted = await deliveries.evictDelayed(EVICTED_PAGE);
    onDrained('retry', evicted);
    const waiting = await events.peek(EVENT_PAGE + this.#malformed.size);
    const jobs = takeEvents(
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
    const drained = ended.reduce((sum, job) => sum + countEvents(job), 0);
    onDrained('event', drained);
    logger.warn(
      { delayedJobsDeleted: evicted, eventsProcessed: drained },
      'the queue is full and returns no jobs to workers: delayed jobs were deleted, waiting events processed',
    );
  }
}

const countEvents = ({ data }: PeekedJob<unknown>) => batchedEvents(data)?.length ?? 1;

/** Returns jobs with at most `count` events in total: deliveries without a slot wait until the queue has memory. */
function takeEvents(jobs: readonly PeekedJob<unknown>[], count: number): PeekedJob<unknown>[] {
  let events = 0;
  return jobs.filter((job) => {
    const total = events + countEvents(job);
    if (events > 0 && total > count) return false;
    events = total;
    return true;
  });
}
