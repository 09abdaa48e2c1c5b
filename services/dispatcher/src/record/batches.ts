import { isItemFault, type RecordWrites } from '@runhook/database';
import { type Logger, MicroBatcher } from '@runhook/runtime';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { type RetryOptions, retryWhileUnavailable } from './retry-while-unavailable.ts';

/** Maximum number of items of a statement. */
const BATCH_SIZE_MAX = 200;
/**
 * Batches of a kind run one after another, so they grow with the load of the database; a statement of a hundred rows
 * costs little more than one of twenty.
 */
const BATCH_SLOTS = 1;
/** Minimum intervals between batches of a kind: shorter if requests wait for them. */
const SPACING_MS = {
  load_subscriptions: 2,
  load_event_states: 2,
  commit: 5,
  load_deliveries: 5,
  defer: 5,
  commit_attempted: 15,
  record_attempts: 10,
  cancel: 10,
  release_successors: 5,
  change_blocks: 2,
};

/** Kinds of writes by the name of the batcher; reads have no kind. */
const WRITE_KINDS: { [name in keyof typeof SPACING_MS]?: string } = {
  commit: 'events',
  commit_attempted: 'events',
  record_attempts: 'attempts',
  defer: 'deferred deliveries',
  cancel: 'cancelled deliveries',
  release_successors: 'released deliveries',
  change_blocks: 'blocks',
};

export interface BatchOptions {
  /** Tracks whether writes succeed. */
  writes: Pick<RecordWrites, 'track'>;
  /** Ends the waits for an unavailable database. */
  stopping: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'batchSize'>;
  logger: Logger;
}

export interface BatchTuning {
  isRetryable?: RetryOptions['isRetryable'];
  gather?: { ms: number; startSize: number };
  sizeMax?: number;
}

/** Creates a batcher whose statements are retried while the database is unavailable. */
export function createBatcher<Item, Result>(
  { writes, stopping, metrics, logger }: BatchOptions,
  name: keyof typeof SPACING_MS,
  run: (items: Item[]) => Promise<Result[]>,
  { isRetryable = () => false, gather, sizeMax = BATCH_SIZE_MAX }: BatchTuning = {},
): MicroBatcher<Item, Result> {
  const kind = WRITE_KINDS[name];
  const runTracked = (items: Item[]) =>
    kind === undefined ? run(items) : writes.track(kind, () => run(items));
  return new MicroBatcher({
    run: (items) => retryWhileUnavailable({ stopping, logger, isRetryable }, () => runTracked(items)),
    sizeMax,
    slots: BATCH_SLOTS,
    spacingMs: SPACING_MS[name],
    ...(gather && { gather }),
    isItemFault,
    onBatch: metrics.batchSize[name],
  });
}

/** Adapts a statement without results to a batcher's `run`. */
export function withoutResults<Item>(write: (items: Item[]) => Promise<unknown>) {
  return async (items: Item[]): Promise<undefined[]> => {
    await write(items);
    return items.map(() => undefined);
  };
}
