import type { Database } from '@runhook/database';
import type { DispatcherMetrics } from '../metrics.ts';
import { createMicroBatcher, type MicroBatcher } from '../micro-batcher.ts';
import { type Patience, StoppingError } from '../patience.ts';
import { loadAccountSubscriptions } from './account-subscriptions.ts';
import { cancelDeliveries } from './cancel-deliveries.ts';
import { commitFanOut, type FanOutCommit, type FanOutRows } from './commit-fan-out.ts';
import { loadDeliveries } from './load-deliveries.ts';
import { pendingDeliveriesOf } from './pending-deliveries.ts';
import { recordAttempts } from './record-attempts.ts';

const BATCH_SIZE_MAX = 200;
/**
 * The next batch waits for the one before: the busier the database, the larger the batches, and a statement of a hundred
 * rows costs little more than one of twenty.
 */
const BATCH_SLOTS = 1;
/** What an event waits for on its way to the endpoint is spaced less than what is written behind it. */
const SPACING_MS = { match: 2, commit: 5, load: 5, record: 10, cancel: 10 };

/**
 * PostgreSQL as the dispatcher uses it: calls for one item each, put together into one statement for all that
 * arrive at about the same time, and patient while the database is away.
 */
export type DispatchRecord = ReturnType<typeof openRecord>;

export function openRecord(
  { pool }: Database,
  patience: Patience,
  onBatch: Pick<DispatcherMetrics['batchSize'], 'match' | 'commit' | 'load' | 'record' | 'cancel'>,
) {
  const batched = <Item, Result>(
    name: keyof typeof onBatch,
    run: (items: Item[]) => Promise<Result[]>,
  ): MicroBatcher<Item, Result> =>
    createMicroBatcher({
      onBatch: onBatch[name],
      run: (items: Item[]) => patience(() => run(items)),
      sizeMax: BATCH_SIZE_MAX,
      slots: BATCH_SLOTS,
      spacingMs: SPACING_MS[name],
      mayBeItemFault: (error) => !(error instanceof StoppingError),
    });
  const done = (items: unknown[]): undefined[] => items.map(() => undefined);

  const accounts = batched('match', (ids: number[]) => loadAccountSubscriptions(pool, ids));
  const commits = batched('commit', (rows: FanOutRows[]) => commitEach(rows));
  const loads = batched('load', (ids: string[]) => loadDeliveries(pool, ids));
  const attempts = batched('record', async (records: Parameters<typeof recordAttempts>[1][number][]) => {
    await recordAttempts(pool, records);
    return done(records);
  });
  const cancels = batched(
    'cancel',
    async (cancellations: Parameters<typeof cancelDeliveries>[1][number][]) => {
      await cancelDeliveries(pool, cancellations);
      return done(cancellations);
    },
  );

  /** An id that is in the batch twice is claimed by its first place in it. */
  async function commitEach(rows: FanOutRows[]): Promise<FanOutCommit[]> {
    const firstById = new Map<string, FanOutRows>();
    for (const row of rows) if (!firstById.has(row.event.eventId)) firstById.set(row.event.eventId, row);
    const results = await commitFanOut(pool, [...firstById.values()]);
    return rows.map((row) => {
      const { eventId } = row.event;
      const result = results.get(eventId) ?? 'known';
      return result === 'claimed' && firstById.get(eventId) !== row ? 'known' : result;
    });
  }

  return {
    loadAccount: accounts.add,
    commit: commits.add,
    load: loads.add,
    recordAttempt: attempts.add,
    cancel: cancels.add,
    pendingOf: (eventId: string) => patience(() => pendingDeliveriesOf(pool, eventId)),
  };
}
