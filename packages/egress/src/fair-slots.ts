/**
 * Limits concurrent work, in total and per group. Waiting groups are served round-robin, so that a group with a
 * thousand waiting items delays another group by one item.
 */
export class FairSlots {
  readonly #max: number;
  readonly #perGroupMax: number;
  readonly #inFlight = new Map<string, number>();
  /** Waiters by group, in the order in which groups are served. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #total = 0;

  constructor({ max, perGroupMax }: { max: number; perGroupMax: number }) {
    this.#max = max;
    this.#perGroupMax = perGroupMax;
  }

  /** Runs the work once a slot is free. */
  async run<T>(group: string, work: () => Promise<T>): Promise<T> {
    if (this.#hasCapacity(group)) this.#acquire(group);
    else await new Promise<void>((resolve) => this.#wait(group, resolve));
    try {
      return await work();
    } finally {
      this.#release(group);
    }
  }

  #hasCapacity(group: string): boolean {
    return this.#total < this.#max && (this.#inFlight.get(group) ?? 0) < this.#perGroupMax;
  }

  #acquire(group: string): void {
    this.#total += 1;
    this.#inFlight.set(group, (this.#inFlight.get(group) ?? 0) + 1);
  }

  #wait(group: string, resolve: () => void): void {
    const waiting = this.#waiting.get(group);
    if (waiting === undefined) this.#waiting.set(group, [resolve]);
    else waiting.push(resolve);
  }

  #release(group: string): void {
    this.#total -= 1;
    const left = (this.#inFlight.get(group) ?? 1) - 1;
    if (left > 0) this.#inFlight.set(group, left);
    else this.#inFlight.delete(group);
    this.#startNext();
  }

  /** Gives the free slot to the first group below its limit, and moves that group to the end. */
  #startNext(): void {
    for (const [group, waiting] of this.#waiting) {
      if (!this.#hasCapacity(group)) continue;
      const resolve = waiting.shift();
      this.#waiting.delete(group);
      if (waiting.length > 0) this.#waiting.set(group, waiting);
      this.#acquire(group);
      resolve?.();
      return;
    }
  }
}
