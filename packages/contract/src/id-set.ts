/**
 * Ids that a subscription names, up to a thousand, sorted and stored in eight bytes each, because every event of the
 * account is looked up in them.
 */
export class IdSet implements Pick<ReadonlySet<string>, 'size' | 'has'> {
  readonly #sorted: Float64Array;

  constructor(ids: readonly number[]) {
    this.#sorted = new Float64Array(ids).sort();
  }

  /** @param text an array of integers as PostgreSQL writes it: `{1,2,3}` */
  static fromArrayText(text: string): IdSet {
    // JSON.parse takes a seventh of the time of split() and Number().
    return new IdSet(JSON.parse(`[${text.slice(1, -1)}]`));
  }

  get size(): number {
    return this.#sorted.length;
  }

  get bytes(): number {
    return this.#sorted.byteLength;
  }

  /** @param id digits */
  has(id: string): boolean {
    const sought = Number(id);
    let low = 0;
    let high = this.#sorted.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const candidate = this.#sorted[middle] as number;
      if (candidate === sought) return true;
      if (candidate < sought) low = middle + 1;
      else high = middle - 1;
    }
    return false;
  }
}
