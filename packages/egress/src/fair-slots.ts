/**
 * Limits concurrent work, in total and per group. Waiting groups are served round-robin, so that a group with a
 * thousand waiting items delays another group by one item.
 */
export class FairSlots {
  readonly #max: number;
  readonly #perGroupMax: number;
  readonly #underWay = new Map<string, number>();
  /** Waiters by group, in the order in which groups are served. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #total = 0;

  constructor({ max, perGroupMax }: { max: number; perGroupMax: number }) {
    this.#max = max;
    this.#perGroupMax = perGroupMax;
  }

  /** Runs the work once a slot is free. */
  async run<T>(group: string, work: () => Promise<T>): Promise<T> {
    if (this.#hasRoom(group)) this.#take(group);
    else await new Promise<void>((resolve) => this.#wait(group, resolve));
    try {
      return await work();
    } finally {
      this.#release(group);
    }
  }

  #hasRoom(group: string): boolean {
    return this.#total < this.#max && (this.#underWay.get(group) ?? 0) < this.#perGroupMax;
  }

  #take(group: string): void {
    this.#total += 1;
    this.#underWay.set(group, (this.#underWay.get(group) ?? 0) + 1);
  }

  #wait(group: string, resolve: () => void): void {
    const waiting = this.#waiting.get(group);
    if (waiting === undefined) this.#waiting.set(group, [resolve]);
    else waiting.push(resolve);
  }

  #release(group: string): void {
    this.#total -= 1;
    const left = (this.#underWay.get(group) ?? 1) - 1;
    if (left > 0) this.#underWay.set(group, left);
    else this.#underWay.delete(group);
    this.#next();
  }

  /** Gives the free slot to the first group below its limit, and moves that group to the end. */
  #next(): void {
    for (const [group, waiting] of this.#waiting) {
      if (!this.#hasRoom(group)) continue;
      const resolve = waiting.shift();
      this.#waiting.delete(group);
      if (waiting.length > 0) this.#waiting.set(group, waiting);
      this.#take(group);
      resolve?.();
      return;
    }
  }
}
