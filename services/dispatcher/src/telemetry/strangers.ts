import type { EventQueue } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import { Gauge, type Registry } from 'prom-client';

export interface StrangersOptions {
  events: Pick<EventQueue, 'keepSettings' | 'strangers'>;
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Measures publishers that are not configured for this queue: Redis accepts their events, but no worker takes them.
 * Sets gauges and logs each new finding. Also rewrites BullMQ's settings, for publishers that may only add.
 */
export function createStrangersMeasure({ events, registry, logger }: StrangersOptions): () => Promise<void> {
  const jobs = new Gauge({
    name: 'runhook_foreign_queue_jobs',
    help: 'Jobs of job-run-events that wait below another prefix, where nobody takes them.',
    registers: [registry],
  });
  const version = new Gauge({
    name: 'runhook_foreign_queue_version',
    help: 'Whether job-run-events was last opened by a BullMQ of another major version.',
    registers: [registry],
  });
  let told = '';

  return async () => {
    try {
      await events.keepSettings();
      const strangers = await events.strangers();
      jobs.set(strangers.elsewhere.reduce((sum, one) => sum + one.jobs, 0));
      version.set(strangers.version === null ? 0 : 1);
      const found = JSON.stringify([strangers.elsewhere.map(({ prefix }) => prefix), strangers.version]);
      if (found !== told && found !== NOBODY)
        logger.warn(strangers, 'publishers use another prefix or another major version of BullMQ');
      told = found;
    } catch (error) {
      jobs.remove();
      version.remove();
      throw error;
    }
  };
}

const NOBODY = JSON.stringify([[], null]);
