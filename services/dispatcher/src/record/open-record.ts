import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@runhook/database';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { loadAccountSubscriptions } from './accounts.ts';
import { recordAttempts } from './attempts.ts';
import { createMicroBatcher, type MicroBatcher } from './batcher.ts';
import { commitFanOut, type FanOutCommit, type FanOutRows } from './commit-fan-out.ts';
import { cancelDeliveries, loadDeliveries, pendingDeliveriesOf } from './deliveries.ts';

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;

/** The dispatcher is stopping: what was waiting for the database or the queue stays undone and comes back. */
export class StoppingError extends Error {
  readonly code = 'stopping';
}

/** Runs work that needs the database or the queue, and waits for as long as they are away. */
export type Patience = <T>(work: () => Promise<T>) => Promise<T>;

export interface PatienceOptions {
  isUnavailable: (error: unknown) => boolean;
  /** Ends every wait with a {@link StoppingError}. */
  signal: AbortSignal;
  /** Told when a wait begins, not at every try. */
  onWait: (error: unknown) => void;
}

export function createPatience({ isUnavailable, signal, onWait }: PatienceOptions): Patience {
  return async (work) => {
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      try {
        return await work();
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        if (waitMs === FIRST_WAIT_MS) onWait(error);
        await sleep(waitMs, undefined, { signal }).catch(() => {
          throw new StoppingError('The dispatcher is stopping.', { cause: error });
        });
      }
    }
  };
}

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
