import type { Simulation } from './engine.ts';

/** Processors that several threads share; served in the order of requests, one slice at a time. */
export class Cores {
  readonly count: number;
  /** Slowdown of each core while all are busy, due to hyper-threading and shared caches. */
  readonly #sharingShare: number;
  readonly #waiting: ((slowness: number) => void)[] = [];
  #busy = 0;
  /** Total busy time of the cores. */
  busyMs = 0;

  constructor(count: number, sharingShare = 0) {
    this.count = count;
    this.#sharingShare = sharingShare;
  }

  /** Calls `start` once a core is free, with its slowdown. The core must be released with release(durationMs). */
  acquire(start: (slowness: number) => void): void {
    if (this.#busy < this.count) {
      this.#busy += 1;
      start(this.#slowness());
    } else this.#waiting.push(start);
  }

  release(durationMs: number): void {
    this.busyMs += durationMs;
    const next = this.#waiting.shift();
    if (next === undefined) this.#busy -= 1;
    else next(this.#slowness());
  }

  #slowness(): number {
    return this.count > 1 && this.#busy === this.count ? 1 + this.#sharingShare : 1;
  }
}

export interface ThreadOptions {
  cores: Cores;
  /** Cost of each iteration of the loop in addition to its tasks; of an event loop, the poll of the sockets. */
  iterationMicros?: number;
  /**
   * Additional cost of an iteration after a long idle time, decreasing with shorter idle times: sleep states, cold
   * caches.
   */
  wakeMicros?: number;
  /** Idle time after which a wake-up costs half of `wakeMicros`. */
  coldHalfMs?: number;
  /** Work of helper threads per task, relative to the task: garbage collection, signing. */
  helperShare?: number;
  /** Garbage collections that stop the thread: share of its work, and duration of each; default none. */
  pauses?: { share: number; ms: number };
  /** Variation of iterations, see `Random.unevenFactor`; default none. */
  unevenness?: number;
  /** Returns the factor for the duration of its work: 1, or the value that a trial sets. */
  slowness?: () => number;
}

interface Task {
  micros: number;
  done: () => void;
}

/**
 * Runs one task after another, and in its next iteration all tasks that have arrived meanwhile: an event loop, a Redis.
 */
export class Thread {
  readonly #simulation: Simulation;
  readonly #options: ThreadOptions;
  #tasks: Task[] = [];
  #isBusy = false;
  #idleSinceMs = Number.NEGATIVE_INFINITY;
  #workSincePauseMs = 0;
  /** CPU time of the thread and its helpers. */
  cpuMs = 0;
  /** CPU time of the thread without helpers: it is saturated at one second per second. */
  busyMs = 0;

  constructor(simulation: Simulation, options: ThreadOptions) {
    this.#simulation = simulation;
    this.#options = options;
  }

  get waiting(): number {
    return this.#tasks.length;
  }

  run(micros: number, done: () => void): void {
    this.#tasks.push({ micros, done });
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#runIteration(coldShare(this.#simulation.nowMs - this.#idleSinceMs, this.#options));
  }

  #runIteration(coldShare: number): void {
    const { cores, iterationMicros = 0, wakeMicros = 0, helperShare = 0 } = this.#options;
    cores.acquire((coreSlowness) => {
      const tasks = this.#tasks.splice(0);
      const times = drawFactor(this.#simulation, this.#options) * coreSlowness;
      const pauseMs = this.#pauseMs();
      const overheadMs = ((iterationMicros + coldShare * wakeMicros) / 1_000) * times + pauseMs;
      const workMs = tasks.reduce((sum, { micros }) => sum + micros, 0) / 1_000;
      const ownMs = overheadMs + workMs * times;
      this.#workSincePauseMs += ownMs - pauseMs;
      if (helperShare > 0) this.#useHelper(ownMs * helperShare);
      let atMs = overheadMs;
      for (const { micros, done } of tasks) {
        atMs += (micros / 1_000) * times;
        this.#simulation.after(atMs, done);
      }
      this.#simulation.after(ownMs, () => {
        this.cpuMs += ownMs;
        this.busyMs += ownMs;
        cores.release(ownMs);
        this.#isBusy = this.#tasks.length > 0;
        if (this.#isBusy) this.#runIteration(0);
        else this.#idleSinceMs = this.#simulation.nowMs;
      });
    });
  }

  #pauseMs(): number {
    const { pauses } = this.#options;
    if (pauses === undefined || this.#workSincePauseMs < pauses.ms / pauses.share) return 0;
    this.#workSincePauseMs = 0;
    return pauses.ms;
  }

  #useHelper(ms: number): void {
    const { cores } = this.#options;
    this.cpuMs += ms;
    cores.acquire(() => this.#simulation.after(ms, () => cores.release(ms)));
  }
}

/** Returns the share of the maximum wake-up cost after an idle time. */
function coldShare(idleMs: number, { coldHalfMs = 1 }: Pick<ThreadOptions, 'coldHalfMs'>): number {
  return idleMs === Number.POSITIVE_INFINITY ? 1 : idleMs / (idleMs + coldHalfMs);
}

function drawFactor(simulation: Simulation, { unevenness, slowness }: Partial<ThreadOptions>): number {
  return (unevenness === undefined ? 1 : simulation.random.unevenFactor(unevenness)) * (slowness?.() ?? 1);
}

/** Work that any core can do, immediately or queued: the backends of a database. */
export class Servers {
  readonly #simulation: Simulation;
  readonly #options: Omit<ThreadOptions, 'iterationMicros' | 'helperShare' | 'pauses'>;
  #busyCount = 0;
  #idleSinceMs = Number.NEGATIVE_INFINITY;
  cpuMs = 0;

  constructor(
    simulation: Simulation,
    options: Omit<ThreadOptions, 'iterationMicros' | 'helperShare' | 'pauses'>,
  ) {
    this.#simulation = simulation;
    this.#options = options;
  }

  run(micros: number, done: () => void): void {
    const { cores, wakeMicros = 0 } = this.#options;
    const idleMs = this.#simulation.nowMs - this.#idleSinceMs;
    const wake = this.#busyCount === 0 ? wakeMicros * coldShare(idleMs, this.#options) : 0;
    this.#busyCount += 1;
    cores.acquire((coreSlowness) => {
      const ms = ((micros + wake) / 1_000) * drawFactor(this.#simulation, this.#options) * coreSlowness;
      this.#simulation.after(ms, () => {
        this.cpuMs += ms;
        this.#busyCount -= 1;
        this.#idleSinceMs = this.#simulation.nowMs;
        cores.release(ms);
        done();
      });
    });
  }
}

/** `Semaphore` of packages/runtime, on the virtual clock: a caller may take more slots than are free. */
export class Semaphore {
  readonly #simulation: Simulation;
  readonly size: number;
  #used = 0;
  #usedMs = 0;
  #changedMs: number;
  readonly #waiting: { weight: number; enter: () => void }[] = [];
  #waitingWeight = 0;

  constructor(simulation: Simulation, size: number) {
    this.#simulation = simulation;
    this.#changedMs = simulation.nowMs;
    this.size = size;
  }

  /** Total weight of the waiting callers. */
  get waiting(): number {
    return this.#waitingWeight;
  }

  /** Time for which slots were used, multiplied by their number. */
  get usedMs(): number {
    return this.#usedMs + this.#used * (this.#simulation.nowMs - this.#changedMs);
  }

  acquire(weight: number, enter: () => void): void {
    if (this.#used < this.size) {
      this.#use(weight);
      enter();
    } else {
      this.#waiting.push({ weight, enter });
      this.#waitingWeight += weight;
    }
  }

  release(weight: number): void {
    this.#use(-weight);
    while (this.#used < this.size) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingWeight -= next.weight;
      this.#use(next.weight);
      next.enter();
    }
  }

  #use(weight: number): void {
    this.#usedMs = this.usedMs;
    this.#changedMs = this.#simulation.nowMs;
    this.#used += weight;
  }
}

/** The disk of a write-ahead log: runs one flush at a time; requests during a flush share the next one. */
export class LogDevice {
  readonly #simulation: Simulation;
  readonly #flushMs: () => number;
  readonly #bytesPerMs: number;
  #waiting: (() => void)[] = [];
  #bytes = 0;
  #isFlushing = false;
  /** Time that writing the bytes took, without the fixed time of each flush: flushes follow each other at any load. */
  busyMs = 0;

  constructor(simulation: Simulation, options: { flushMs: () => number; bytesPerSecond: number }) {
    this.#simulation = simulation;
    this.#flushMs = options.flushMs;
    this.#bytesPerMs = options.bytesPerSecond / 1_000;
  }

  flush(bytes: number, done: () => void): void {
    this.#waiting.push(done);
    this.#bytes += bytes;
    if (!this.#isFlushing) this.#flushNext();
  }

  #flushNext(): void {
    this.#isFlushing = true;
    const sharing = this.#waiting.splice(0);
    const writingMs = this.#bytes / this.#bytesPerMs;
    const tookMs = this.#flushMs() + writingMs;
    this.#bytes = 0;
    this.#simulation.after(tookMs, () => {
      this.busyMs += writingMs;
      for (const done of sharing) done();
      if (this.#waiting.length > 0) this.#flushNext();
      else this.#isFlushing = false;
    });
  }
}
