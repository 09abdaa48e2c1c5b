/**
 * Collects items that arrive at about the same time and hands them on together: at once while a slot is free, so
 * that a quiet service adds no wait, and in ever larger batches while the slots are busy.
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
  /** Whether a failed batch may have failed for one of its items, so that each gets a try of its own. */
  mayBeItemFault: (error: unknown) => boolean;
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
  let scheduled = false;

  function schedule(): void {
    if (scheduled || waiting.length === 0 || inFlight >= options.slots) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      const batch = waiting.slice(0, options.sizeMax);
      waiting = waiting.slice(options.sizeMax);
      inFlight += 1;
      void settle(batch).finally(() => {
        inFlight -= 1;
        schedule();
      });
      schedule();
    });
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
