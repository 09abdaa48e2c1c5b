import type { Queryable } from '@runhook/database';
import { type Lifecycle, startPeriodic } from '@runhook/runtime';
import type { ManagementMetrics } from '../metrics.ts';
import type { FeedDependencies } from './routes.ts';
import { FeedStateReader } from './state.ts';
import { FeedWaits } from './waits.ts';

const MEASURE_INTERVAL_MS = 10_000;

/**
 * Opens the components that read the feed, and measures its horizon periodically, because a transaction may hold it back
 * while no one reads.
 * @param database the pool of the requests, on the primary: a page has a slot of theirs, not one of the slow reads
 */
export function openFeed(
  { lifecycle, metrics }: { lifecycle: Lifecycle; metrics: Pick<ManagementMetrics, 'measureFeed'> },
  database: Queryable,
): Pick<FeedDependencies, 'database' | 'state' | 'waits'> {
  const state = new FeedStateReader({ database });
  metrics.measureFeed(() => state.delaySeconds);
  // The health checks report an unavailable database.
  const timer = startPeriodic(
    MEASURE_INTERVAL_MS,
    async () => void (await state.readHorizon()),
    () => undefined,
  );
  lifecycle.onClose('measure of the feed', () => timer.stop());
  return { database, state, waits: new FeedWaits({ database, state }) };
}
