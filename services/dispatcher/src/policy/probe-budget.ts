const GAP_MS = 10;
/**
 * Time whose unused probes (ten) may be made at once later, because jobs of lanes do not run exactly when they are due.
 */
const UNUSED_FOR_MS = 100;
const WAIT_MAX_MS = 30_000;

/** Assigns consecutive times with a gap, at most the gap and half a minute ahead. */
export class StartSchedule {
  #nextAtMs = 0;

  next(nowMs: number, gapMs: number): number {
    const atMs = Math.max(nowMs, this.#nextAtMs) + gapMs;
    this.#nextAtMs = Math.min(atMs, nowMs + WAIT_MAX_MS);
    return atMs;
  }
}

/** Bounds the cost of all failing lanes: they share 100 probes a second, and their jobs start 10 ms apart. */
export class ProbeBudget {
  readonly #starts = new StartSchedule();
  #nextProbeAtMs = 0;

  isFree(nowMs: number): boolean {
    return this.#nextProbeAtMs < nowMs + UNUSED_FOR_MS;
  }

  acquire(nowMs: number): void {
    this.#nextProbeAtMs = Math.max(nowMs, this.#nextProbeAtMs) + GAP_MS;
  }

  /** Returns the time for the job of another failing lane. Of a thousand simultaneous jobs, only ten would get a probe. */
  nextStartAtMs(nowMs: number): number {
    return this.#starts.next(nowMs, GAP_MS);
  }
}
