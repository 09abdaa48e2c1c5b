/** Looked up once: in jest each look at a global is a call. */
const { exp, floor, imul, log, max, sqrt } = Math;

/** What is to happen at a moment of the virtual clock. */
interface Planned {
  atMs: number;
  /** What was planned first happens first. */
  order: number;
  act: () => void;
}

/** A virtual clock: nothing waits, and one seed makes one course of things. */
export class Simulation {
  readonly random: Random;
  #nowMs = 0;
  #order = 0;
  readonly #heap: Planned[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, act: () => void): void {
    const planned = { atMs: this.#nowMs + max(0, delayMs), order: this.#order++, act };
    const heap = this.#heap;
    let index = heap.length;
    heap.push(planned);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(planned, heap[parent] as Planned)) break;
      heap[index] = heap[parent] as Planned;
      index = parent;
    }
    heap[index] = planned;
  }

  every(periodMs: number, act: () => void): void {
    this.after(periodMs, () => {
      act();
      this.every(periodMs, act);
    });
  }

  /** What is planned for later stays planned. */
  runUntil(endMs: number): void {
    while (this.#heap.length > 0 && (this.#heap[0] as Planned).atMs <= endMs) {
      const { atMs, act } = this.#takeFirst();
      this.#nowMs = atMs;
      act();
    }
    this.#nowMs = endMs;
  }

  #takeFirst(): Planned {
    const heap = this.#heap;
    const first = heap[0] as Planned;
    const last = heap.pop() as Planned;
    const { length } = heap;
    if (length === 0) return first;
    let index = 0;
    while (true) {
      let child = 2 * index + 1;
      if (child >= length) break;
      const right = child + 1;
      if (right < length && isBefore(heap[right] as Planned, heap[child] as Planned)) child = right;
      if (!isBefore(heap[child] as Planned, last)) break;
      heap[index] = heap[child] as Planned;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(one: Planned, other: Planned): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** Mulberry32: small, and good enough for queues. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0, below 1. */
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

  /** By its median and its 99th percentile: most answers are quick, some take long. */
  logNormal(p50: number, p99: number): number {
    if (p99 <= p50) return p50;
    const deviation = log(p99 / p50) / Z_99;
    return p50 * exp(deviation * this.#normal());
  }

  /** By Marsaglia's polar method: a sine may differ from one engine to the next. */
  #normal(): number {
    while (true) {
      const x = 2 * this.next() - 1;
      const square = x * x + (2 * this.next() - 1) ** 2;
      if (square > 0 && square < 1) return x * sqrt((-2 * log(square)) / square);
    }
  }

  /** 1 in the mean, with so many times its median as the 99th percentile. */
  uneven(p99OverP50: number): number {
    const deviation = log(p99OverP50) / Z_99;
    return this.logNormal(exp(-(deviation ** 2) / 2), p99OverP50 * exp(-(deviation ** 2) / 2));
  }

  below(count: number): number {
    return floor(this.next() * count);
  }
}

/** Of the normal distribution: 99 % lies below so many deviations. */
const Z_99 = 2.326_348;
