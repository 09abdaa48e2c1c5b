import { dropOldDayPartitions, ensureDayPartitions } from '@runhook/database';
import type { UpkeepTask } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import type { DispatcherMetrics } from '../metrics.ts';
import { type ReconcileDependencies, reconcile } from './reconcile.ts';

const RECONCILE_EVERY_MS = 10_000;
const PARTITIONS_EVERY_MS = 3_600_000;

/** What the dispatchers do on a schedule, one of them at a time. */
export function upkeepTasks(
  dependencies: ReconcileDependencies & { retentionDays: number; metrics: DispatcherMetrics; logger: Logger },
): UpkeepTask[] {
  const { pool, retentionDays, metrics, logger } = dependencies;
  return [
    {
      name: 'reconcile',
      everyMs: RECONCILE_EVERY_MS,
      async run() {
        const found = await reconcile(dependencies);
        if (!found) return;
        metrics.reconcilerLastRun.setToCurrentTime();
        metrics.reconciled.inc({ kind: 'delivery' }, found.deliveries);
        metrics.reconciled.inc({ kind: 'event' }, found.events);
        const level = found.deliveries + found.events > 0 ? 'warn' : 'debug';
        logger[level](found, 'reconciled: put back what the queue had lost');
      },
    },
    {
      name: 'partitions',
      everyMs: PARTITIONS_EVERY_MS,
      async run() {
        const made = await ensureDayPartitions(pool);
        const dropped = await dropOldDayPartitions(pool, retentionDays);
        logger.info({ made, dropped, retentionDays }, 'day partitions kept up');
      },
    },
  ];
}
