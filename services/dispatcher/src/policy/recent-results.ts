const RESULTS_MAX = 20;
const RESULTS_MASK = 2 ** RESULTS_MAX - 1;

/** Results of the last 20 attempts of a subscription. */
export class RecentResults {
  /** One bit for each result, 1 for a success; the latest is the lowest. */
  #bits = 0;
  #count = 0;

  add(succeeded: boolean): void {
    this.#bits = ((this.#bits << 1) | Number(succeeded)) & RESULTS_MASK;
    this.#count = Math.min(this.#count + 1, RESULTS_MAX);
  }

  get count(): number {
    return this.#count;
  }

  get hasSuccess(): boolean {
    return this.#bits !== 0;
  }

  /** Share of successes, from 0 to 1; 0 before the first result. */
  get successRate(): number {
    let successes = 0;
    for (let rest = this.#bits; rest > 0; rest &= rest - 1) successes += 1;
    return successes / Math.max(1, this.#count);
  }
}
