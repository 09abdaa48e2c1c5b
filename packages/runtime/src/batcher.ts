import { splitInHalf } from './halving.ts';

export interface MicroBatcherOptions<Item, Result> {
  /** Must return one result per item, in order. */
  run: (items: Item[]) => Promise<Result[]>;
  sizeMax: number;
  /** Returns an item's share of `sizeMax`; default 1. An item larger than `sizeMax` is a separate batch. */
  sizeOf?: (item: Item) => number;
  /** Maximum number of batches in flight. */
  slots: number;
  /** Minimum time between the starts of two batches, unless items of the size `startSize` are waiting. */
  spacingMs: number;
  /**
   * Waiting size, in the units of `sizeMax`, from which a batch starts as soon as a slot is free; default `sizeMax`.
   */
  startSize?: number;
  /** For items whose callers can wait: a batch smaller than its `startSize` waits for up to `ms` for further items. */
  gather?: { ms: number; startSize: number };
  /** Whether an error means that an item is invalid. The batch is then halved until the invalid item is isolated. */
  isItemFault: (error: unknown) => boolean;
  /** Called with the number of items of each batch. */
  onBatch?: (size: number) => void;
}

interface WaitingItem<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/**
 * Collects items that arrive at about the same time into batches. A batch starts immediately if a slot is free and no
 * batch has just started, so that an idle service adds no delay; under load batches become larger.
 */
export class MicroBatcher<Item, Result> {
  readonly #options: MicroBatcherOptions<Item, Result>;
  #waiting: WaitingItem<Item, Result>[] = [];
  /** Total size of the waiting items. */
  #waitingSize = 0;
  #inFlight = 0;
  /** Earliest start of the next batch, unless its size is sufficient. */
  #nextStartMs = Number.NEGATIVE_INFINITY;
  /** Time from which `gather.ms` is counted. */
  #waitingSinceMs = 0;
  #scheduled: NodeJS.Immediate | undefined;
  #delayed: NodeJS.Timeout | undefined;
  #delayedUntilMs = 0;

  constructor(options: MicroBatcherOptions<Item, Result>) {
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) this.#waitingSinceMs = performance.now();
      this.#waiting.push({ item, resolve, reject });
      this.#waitingSize += this.#sizeOf(item);
      this.#schedule();
    });
  }

  #schedule(): void {
    const { slots, sizeMax, startSize = sizeMax, gather } = this.#options;
    if (this.#scheduled || this.#waiting.length === 0 || this.#inFlight >= slots) return;
    const nowMs = performance.now();
    let startMs = this.#nextStartMs;
    if (gather && this.#waitingSize < gather.startSize)
      startMs = Math.max(startMs, this.#waitingSinceMs + gather.ms);
    if (startMs <= nowMs || this.#waitingSize >= startSize) {
      clearTimeout(this.#delayed);
      this.#delayed = undefined;
      this.#scheduled = setImmediate(() => this.#start());
    } else if (this.#delayed === undefined || startMs < this.#delayedUntilMs) {
      clearTimeout(this.#delayed);
      this.#delayedUntilMs = startMs;
      this.#delayed = setTimeout(() => this.#start(), startMs - nowMs);
    }
  }

  #start(): void {
    const { onBatch, spacingMs } = this.#options;
    this.#scheduled = undefined;
    this.#delayed = undefined;
    const batch = this.#waiting.splice(0, this.#nextCount());
    const size = batch.reduce((sum, { item }) => sum + this.#sizeOf(item), 0);
    this.#waitingSize -= size;
    this.#inFlight += 1;
    this.#waitingSinceMs = performance.now();
    this.#nextStartMs = this.#waitingSinceMs + spacingMs;
    onBatch?.(batch.length);
    void this.#settle(batch).finally(() => {
      this.#inFlight -= 1;
      this.#schedule();
    });
    this.#schedule();
  }

  #sizeOf(item: Item): number {
    return this.#options.sizeOf?.(item) ?? 1;
  }

  /** Returns the number of items that fit into one batch, at least one. */
  #nextCount(): number {
    const { sizeMax, sizeOf } = this.#options;
    if (sizeOf === undefined) return sizeMax;
    let size = 0;
    const end = this.#waiting.findIndex(({ item }, index) => {
      size += this.#sizeOf(item);
      return index > 0 && size > sizeMax;
    });
    return end === -1 ? this.#waiting.length : end;
  }

  /** Halves a batch that is rejected for one of its items, so that only the caller of that item gets the error. */
  async #settle(batch: WaitingItem<Item, Result>[]): Promise<void> {
    const { run, isItemFault } = this.#options;
    try {
      const results = await run(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => {
        resolve(results[index] as Result);
      });
    } catch (error) {
      if (batch.length > 1 && isItemFault(error))
        for (const part of splitInHalf(batch)) await this.#settle(part);
      else for (const { reject } of batch) reject(error);
    }
  }
}
