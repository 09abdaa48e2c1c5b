import type { EventQueue } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import { Gauge, type Registry } from 'prom-client';

export interface ForeignPublishersOptions {
  events: Pick<EventQueue, 'restoreSettings' | 'findForeignPublishers'>;
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Looks for publishers with another key prefix, whose events Redis accepts, but no worker takes, or with another major
 * version of BullMQ. Sets gauges and logs each new finding. Also restores BullMQ's settings in an emptied queue.
 */
export function createForeignPublishersMeasure({
  events,
  registry,
  logger,
}: ForeignPublishersOptions): () => Promise<void> {
  const jobs = new Gauge({
    name: 'runhook_foreign_queue_jobs',
    help: 'Jobs of job-run-events under another key prefix, where no worker takes them.',
    registers: [registry],
  });
  const version = new Gauge({
    name: 'runhook_foreign_queue_version',
    help: 'Whether job-run-events was last opened by a BullMQ of another major version.',
    registers: [registry],
  });
  let reported = '';

  return async () => {
    try {
      await events.restoreSettings();
      const foreign = await events.findForeignPublishers();
      jobs.set(foreign.foreignQueues.reduce((sum, one) => sum + one.jobs, 0));
      version.set(foreign.version === null ? 0 : 1);
      const found = JSON.stringify([foreign.foreignQueues.map(({ prefix }) => prefix), foreign.version]);
      if (found !== reported && found !== NOTHING_FOREIGN)
        logger.warn(foreign, 'publishers use another prefix or another major version of BullMQ');
      reported = found;
    } catch (error) {
      jobs.remove();
      version.remove();
      throw error;
    }
  };
}

/** Value of `found` without foreign queues and with the same version of BullMQ. */
const NOTHING_FOREIGN = JSON.stringify([[], null]);
