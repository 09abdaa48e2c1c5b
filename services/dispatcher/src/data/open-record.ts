import type { Database } from '@runhook/database';
import { createMicroBatcher, type MicroBatcher } from '../micro-batcher.ts';
import { type Patience, StoppingError } from '../patience.ts';
import { cancelDeliveries } from './cancel-deliveries.ts';
import { commitFanOut, type FanOutRows } from './commit-fan-out.ts';
import { loadDeliveries } from './load-deliveries.ts';
import { matchSubscriptions } from './match-subscriptions.ts';
import { pendingDeliveriesOf } from './pending-deliveries.ts';
import { recordAttempts } from './record-attempts.ts';

const BATCH_SIZE_MAX = 200;
const BATCH_SLOTS = 2;

/**
 * PostgreSQL as the dispatcher uses it: calls for one item each, put together into one statement for all that
 * arrive at about the same time, and patient while the database is away.
 */
export type DispatchRecord = ReturnType<typeof openRecord>;

export function openRecord({ pool }: Database, patience: Patience) {
  const batched = <Item, Result>(run: (items: Item[]) => Promise<Result[]>): MicroBatcher<Item, Result> =>
    createMicroBatcher({
      run: (items: Item[]) => patience(() => run(items)),
      sizeMax: BATCH_SIZE_MAX,
      slots: BATCH_SLOTS,
      mayBeItemFault: (error) => !(error instanceof StoppingError),
    });
  const done = (items: unknown[]): undefined[] => items.map(() => undefined);

  const matches = batched((events: Parameters<typeof matchSubscriptions>[1][number][]) =>
    matchSubscriptions(pool, events),
  );
  const commits = batched((rows: FanOutRows[]) => commitEach(rows));
  const loads = batched((ids: string[]) => loadDeliveries(pool, ids));
  const attempts = batched(async (records: Parameters<typeof recordAttempts>[1][number][]) => {
    await recordAttempts(pool, records);
    return done(records);
  });
  const cancels = batched(async (cancellations: Parameters<typeof cancelDeliveries>[1][number][]) => {
    await cancelDeliveries(pool, cancellations);
    return done(cancellations);
  });

  /** An id that is in the batch twice is claimed by its first place in it. */
  async function commitEach(rows: FanOutRows[]): Promise<boolean[]> {
    const firstById = new Map<string, FanOutRows>();
    for (const row of rows) if (!firstById.has(row.event.eventId)) firstById.set(row.event.eventId, row);
    const claimed = await commitFanOut(pool, [...firstById.values()]);
    return rows.map((row) => firstById.get(row.event.eventId) === row && claimed.has(row.event.eventId));
  }

  return {
    match: matches.add,
    commit: commits.add,
    load: loads.add,
    recordAttempt: attempts.add,
    cancel: cancels.add,
    pendingOf: (eventId: string) => patience(() => pendingDeliveriesOf(pool, eventId)),
  };
}
