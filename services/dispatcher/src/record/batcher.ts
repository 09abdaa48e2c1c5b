import type { SubscriptionStatus } from './attempts.ts';

/**
 * Collects items that arrive at about the same time and hands them on together: at once while a slot is free and no
 * batch has just begun, so that a quiet service adds no wait, and in ever larger batches the more there is to do.
 */
export interface MicroBatcher<Item, Result> {
  add(item: Item): Promise<Result>;
}

export interface MicroBatcherOptions<Item, Result> {
  /** Answers one result per item, in order. */
  run: (items: Item[]) => Promise<Result[]>;
  sizeMax: number;
  /** Batches in flight at the same time. */
  slots: number;
  /** The time from the start of a batch to that of the next, unless that is full. */
  spacingMs: number;
  /** Whether a failed batch may have failed for one of its items, so that each gets a try of its own. */
  mayBeItemFault: (error: unknown) => boolean;
  /** Told of each batch's size. */
  onBatch?: (size: number) => void;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

export function createMicroBatcher<Item, Result>(
  options: MicroBatcherOptions<Item, Result>,
): MicroBatcher<Item, Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let inFlight = 0;
  let lastStartMs = Number.NEGATIVE_INFINITY;
  let scheduled: NodeJS.Immediate | undefined;
  let delayed: NodeJS.Timeout | undefined;

  function schedule(): void {
    if (scheduled || waiting.length === 0 || inFlight >= options.slots) return;
    const waitMs = lastStartMs + options.spacingMs - performance.now();
    if (waitMs <= 0 || waiting.length >= options.sizeMax) {
      clearTimeout(delayed);
      delayed = undefined;
      scheduled = setImmediate(start);
    } else {
      delayed ??= setTimeout(start, waitMs);
    }
  }

  function start(): void {
    scheduled = undefined;
    delayed = undefined;
    const batch = waiting.slice(0, options.sizeMax);
    waiting = waiting.slice(options.sizeMax);
    inFlight += 1;
    lastStartMs = performance.now();
    options.onBatch?.(batch.length);
    void settle(batch).finally(() => {
      inFlight -= 1;
      schedule();
    });
    schedule();
  }

  async function settle(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.run(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => {
        resolve(results[index] as Result);
      });
    } catch (error) {
      // One bad item must not take its neighbours down.
      if (batch.length > 1 && options.mayBeItemFault(error)) for (const one of batch) await settle([one]);
      else for (const { reject } of batch) reject(error);
    }
  }

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        schedule();
      }),
  };
}

/**
 * Keeps `dispatched_at` and `http_status_code` of subscriptions current with one write per subscription and period,
 * however many deliveries it had.
 */
export interface StatusCoalescer {
  note(status: SubscriptionStatus): void;
  /** Writes what is left and ends the timer. */
  close(): Promise<void>;
}

export function createStatusCoalescer(options: {
  write: (statuses: SubscriptionStatus[]) => Promise<void>;
  periodMs: number;
  onError: (error: unknown) => void;
}): StatusCoalescer {
  let latest = new Map<string, SubscriptionStatus>();
  let writing = Promise.resolve();

  function note(status: SubscriptionStatus): void {
    const known = latest.get(status.subscriptionId);
    if (!known || known.dispatchedAt <= status.dispatchedAt) latest.set(status.subscriptionId, status);
  }

  async function flush(): Promise<void> {
    if (latest.size === 0) return;
    const statuses = [...latest.values()];
    latest = new Map();
    try {
      await options.write(statuses);
    } catch (error) {
      // Kept for the next period, unless something newer has come.
      for (const status of statuses)
        if (!latest.has(status.subscriptionId)) latest.set(status.subscriptionId, status);
      options.onError(error);
    }
  }

  const timer = setInterval(() => {
    writing = writing.then(flush);
  }, options.periodMs);
  timer.unref();

  return {
    note,
    async close() {
      clearInterval(timer);
      await writing;
      await flush();
    },
  };
}
