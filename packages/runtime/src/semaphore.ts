/** Bounds how many do the same at the same time, such as attempts in place, whatever events come to. First come, first served. */
export class Semaphore {
  #free: number;
  readonly #line = new Line();
  readonly #behind = new Line();

  /** How many wait. */
  get waiting(): number {
    return this.#line.length + this.#behind.length;
  }

  constructor(size: number) {
    this.#free = size;
  }

  /**
   * Undefined when there was room, so that nobody has to wait for nothing. Whoever acquired must release as much.
   * @param weight how much room it takes; the last who enters may take more than is left
   * @param isBehind waits until nobody else does
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

/** Shifting a long array for each one that enters would cost its whole length every time. */
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
