/** Limits concurrency; waiters are served in the order of arrival, low priority last. */
export class Semaphore {
  #free: number;
  readonly #normal = new WaiterQueue();
  readonly #lowPriority = new WaiterQueue();

  /** The number of waiters. */
  get waiting(): number {
    return this.#normal.length + this.#lowPriority.length;
  }

  constructor(size: number) {
    this.#free = size;
  }

  /**
   * Returns undefined if a slot was free, so that the caller need not await. The caller must release the same weight
   * exactly once.
   * @param weight number of slots; a caller may take more than are free, which makes the count negative
   * @param isLowPriority if no slot is free, waits until no caller of normal priority waits
   */
  acquire(weight = 1, isLowPriority = false): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= weight;
      return undefined;
    }
    return new Promise((admit) => (isLowPriority ? this.#lowPriority : this.#normal).push({ weight, admit }));
  }

  release(weight = 1): void {
    this.#free += weight;
    while (this.#free > 0) {
      const next = this.#normal.shift() ?? this.#lowPriority.shift();
      if (!next) return;
      this.#free -= next.weight;
      next.admit();
    }
  }
}

interface Waiter {
  weight: number;
  admit: () => void;
}

/** A queue with amortized constant cost: Array.shift() of a long array would move all elements each time. */
class WaiterQueue {
  readonly #waiters: (Waiter | undefined)[] = [];
  #first = 0;

  get length(): number {
    return this.#waiters.length - this.#first;
  }

  push(waiter: Waiter): void {
    this.#waiters.push(waiter);
  }

  shift(): Waiter | undefined {
    const next = this.#waiters[this.#first];
    if (!next) return undefined;
    this.#waiters[this.#first] = undefined;
    this.#first += 1;
    if (this.#first > 1_024 || this.#first === this.#waiters.length) {
      this.#waiters.splice(0, this.#first);
      this.#first = 0;
    }
    return next;
  }
}
