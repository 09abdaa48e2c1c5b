/** Bounds how many do the same at the same time, such as attempts in place, whatever events come to. First come, first served. */
export class Semaphore {
  #free: number;
  readonly #waiting: { weight: number; enter: () => void }[] = [];
  #first = 0;

  constructor(size: number) {
    this.#free = size;
  }

  /**
   * Undefined when there was room, so that nobody has to wait for nothing. Whoever acquired must release as much.
   * @param weight how much room it takes; the last who enters may take more than is left
   */
  acquire(weight = 1): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= weight;
      return undefined;
    }
    return new Promise((enter) => this.#waiting.push({ weight, enter }));
  }

  release(weight = 1): void {
    this.#free += weight;
    while (this.#free > 0) {
      const next = this.#waiting[this.#first];
      if (!next) return;
      this.#first += 1;
      // Shifting a long array for each one that enters would cost its whole length every time.
      if (this.#first > 1_024 || this.#first === this.#waiting.length) {
        this.#waiting.splice(0, this.#first);
        this.#first = 0;
      }
      this.#free -= next.weight;
      next.enter();
    }
  }
}
