/** Limits concurrency; waiters are served in the order of arrival, low priority last. */
export class Semaphore {
  #free: number;
  readonly #line = new Line();
  readonly #behind = new Line();

  /** The number of waiters. */
  get waiting(): number {
    return this.#line.length + this.#behind.length;
  }

  constructor(size: number) {
    this.#free = size;
  }

  /**
   * Returns undefined if a slot was free, so that the caller need not await. The caller must release the same weight
   * exactly once.
   * @param weight number of slots; a caller may take more than are free, which makes the count negative
   * @param isBehind low priority: waits until there are no other waiters
   */
  acquire(weight = 1, isBehind = false): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= weight;
      return undefined;
    }
    return new Promise((enter) => (isBehind ? this.#behind : this.#line).push({ weight, enter }));
  }

  release(weight = 1): void {
    this.#free += weight;
    while (this.#free > 0) {
      const next = this.#line.shift() ?? this.#behind.shift();
      if (!next) return;
      this.#free -= next.weight;
      next.enter();
    }
  }
}

interface Waiting {
  weight: number;
  enter: () => void;
}

/** A queue with amortized constant cost: Array.shift() of a long array would move all elements each time. */
class Line {
  readonly #waiting: (Waiting | undefined)[] = [];
  #first = 0;

  get length(): number {
    return this.#waiting.length - this.#first;
  }

  push(one: Waiting): void {
    this.#waiting.push(one);
  }

  shift(): Waiting | undefined {
    const next = this.#waiting[this.#first];
    if (!next) return undefined;
    this.#waiting[this.#first] = undefined;
    this.#first += 1;
    if (this.#first > 1_024 || this.#first === this.#waiting.length) {
      this.#waiting.splice(0, this.#first);
      this.#first = 0;
    }
    return next;
  }
}
