/** Bounds how many do the same at the same time, such as attempts in place, whatever events come to. First come, first served. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];
  #first = 0;

  constructor(size: number) {
    this.#free = size;
  }

  /** Undefined when it was free, so that nobody has to wait for nothing. Whoever acquired must release, once. */
  acquire(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting[this.#first];
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#first += 1;
    // Shifting a long array for each one that enters would cost its whole length every time.
    if (this.#first > 1_024 || this.#first === this.#waiting.length) {
      this.#waiting.splice(0, this.#first);
      this.#first = 0;
    }
    next();
  }
}
