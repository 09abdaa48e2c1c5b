import type { Simulation } from './engine.ts';

export interface BatcherOptions<Item> {
  /** Maximum total size of a batch. */
  sizeMax: number;
  sizeOf: (item: Item) => number;
  slots: number;
  spacingMs: number;
  run: (items: Item[], done: () => void) => void;
}

/** The rules of `MicroBatcher` (packages/runtime), on the virtual clock. */
export class Batcher<Item> {
  readonly #simulation: Simulation;
  readonly #options: BatcherOptions<Item>;
  #waiting: Item[] = [];
  #waitingSize = 0;
  #inFlight = 0;
  #nextStartMs = Number.NEGATIVE_INFINITY;
  #isPlanned = false;

  constructor(simulation: Simulation, options: BatcherOptions<Item>) {
    this.#simulation = simulation;
    this.#options = options;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    this.#waitingSize += this.#options.sizeOf(item);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#waiting.length === 0 || this.#inFlight >= this.#options.slots) return;
    const waitMs = this.#untilNextMs();
    if (waitMs > 0 && this.#isPlanned) return;
    this.#isPlanned = true;
    // Items that arrive at the same time are batched.
    this.#simulation.after(waitMs, () => this.#start());
  }

  #untilNextMs(): number {
    if (this.#waitingSize >= this.#options.sizeMax) return 0;
    const waitMs = this.#nextStartMs - this.#simulation.nowMs;
    return waitMs > ROUNDING_MS ? waitMs : 0;
  }

  #start(): void {
    this.#isPlanned = false;
    if (this.#waiting.length === 0 || this.#inFlight >= this.#options.slots) return;
    if (this.#untilNextMs() > 0) {
      this.#schedule();
      return;
    }
    this.#inFlight += 1;
    const { spacingMs, run } = this.#options;
    const batch = this.#takeBatch();
    this.#nextStartMs = this.#simulation.nowMs + spacingMs;
    run(batch, () => {
      this.#inFlight -= 1;
      this.#schedule();
    });
    this.#schedule();
  }

  #takeBatch(): Item[] {
    const { sizeMax, sizeOf } = this.#options;
    let size = 0;
    let count = 0;
    for (const item of this.#waiting) {
      if (count > 0 && size + sizeOf(item) > sizeMax) break;
      size += sizeOf(item);
      count += 1;
    }
    this.#waitingSize -= size;
    return this.#waiting.splice(0, count);
  }
}

/** A shorter wait counts as none, because times are sums of fractions. */
const ROUNDING_MS = 1e-6;
