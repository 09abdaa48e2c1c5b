/** Cached because access to a global is a function call in Jest. */
const { exp, floor, imul, log, max, sqrt } = Math;

/** An action that is scheduled on the virtual clock. */
interface ScheduledAction {
  atMs: number;
  /** Actions at the same time run in the order in which they were scheduled. */
  order: number;
  action: () => void;
}

/** A virtual clock: nothing waits in real time, and a seed determines the complete course. */
export class Simulation {
  readonly random: Random;
  #nowMs = 0;
  #order = 0;
  readonly #heap: ScheduledAction[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, action: () => void): void {
    const scheduled = { atMs: this.#nowMs + max(0, delayMs), order: this.#order++, action };
    const heap = this.#heap;
    let index = heap.length;
    heap.push(scheduled);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(scheduled, heap[parent] as ScheduledAction)) break;
      heap[index] = heap[parent] as ScheduledAction;
      index = parent;
    }
    heap[index] = scheduled;
  }

  every(periodMs: number, action: () => void): void {
    this.after(periodMs, () => {
      action();
      this.every(periodMs, action);
    });
  }

  /** Runs until a time; later actions remain scheduled. */
  runUntil(endMs: number): void {
    while (this.#heap.length > 0 && (this.#heap[0] as ScheduledAction).atMs <= endMs) {
      const { atMs, action } = this.#takeFirst();
      this.#nowMs = atMs;
      action();
    }
    this.#nowMs = endMs;
  }

  #takeFirst(): ScheduledAction {
    const heap = this.#heap;
    const first = heap[0] as ScheduledAction;
    const last = heap.pop() as ScheduledAction;
    const { length } = heap;
    if (length === 0) return first;
    let index = 0;
    while (true) {
      let child = 2 * index + 1;
      if (child >= length) break;
      const right = child + 1;
      if (right < length && isBefore(heap[right] as ScheduledAction, heap[child] as ScheduledAction))
        child = right;
      if (!isBefore(heap[child] as ScheduledAction, last)) break;
      heap[index] = heap[child] as ScheduledAction;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(one: ScheduledAction, other: ScheduledAction): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** Mulberry32: small, and sufficiently random for queues. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0, below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  exponential(mean: number): number {
    return -mean * log(1 - this.next());
  }

  /** Draws from the distribution with this median and 99th percentile: most responses are fast, some are slow. */
  logNormal(p50: number, p99: number): number {
    if (p99 <= p50) return p50;
    const deviation = log(p99 / p50) / Z_99;
    return p50 * exp(deviation * this.#normal());
  }

  /** Uses Marsaglia's polar method, because the result of a sine may differ between engines. */
  #normal(): number {
    while (true) {
      const x = 2 * this.next() - 1;
      const square = x * x + (2 * this.next() - 1) ** 2;
      if (square > 0 && square < 1) return x * sqrt((-2 * log(square)) / square);
    }
  }

  /** Draws with mean 1; the 99th percentile is `p99OverP50` times the median. */
  unevenFactor(p99OverP50: number): number {
    const deviation = log(p99OverP50) / Z_99;
    return this.logNormal(exp(-(deviation ** 2) / 2), p99OverP50 * exp(-(deviation ** 2) / 2));
  }

  below(count: number): number {
    return floor(this.next() * count);
  }
}

/** The 99th percentile of the normal distribution in standard deviations. */
const Z_99 = 2.326_348;
