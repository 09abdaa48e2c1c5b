/**
 * Ids of the jobs that a subscription names, up to a thousand, sorted and stored in eight bytes each, because every
 * event of the account is looked up in them. An empty list means all jobs.
 */
export class JobIds implements Pick<ReadonlySet<string>, 'size' | 'has'> {
  readonly #sorted: Float64Array;

  /** @param text an array of integers as PostgreSQL writes it: `{1,2,3}` */
  constructor(text: string) {
    // JSON.parse takes a seventh of the time of split() and Number().
    this.#sorted = new Float64Array(JSON.parse(`[${text.slice(1, -1)}]`)).sort();
  }

  get size(): number {
    return this.#sorted.length;
  }

  get bytes(): number {
    return this.#sorted.byteLength;
  }

  /** @param jobId digits */
  has(jobId: string): boolean {
    const sought = Number(jobId);
    let low = 0;
    let high = this.#sorted.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const id = this.#sorted[middle] as number;
      if (id === sought) return true;
      if (id < sought) low = middle + 1;
      else high = middle - 1;
    }
    return false;
  }
}
