const GAP_MS = 10;
/** Lanes do not run exactly when they are due, so probes that were not made within this time may be made at once. */
const SAVED_MS = 100;
const WAIT_MAX_MS = 30_000;

/** Times that follow one another at a distance, at most half a minute ahead. */
export class Turns {
  #nextAtMs = 0;

  after(nowMs: number, gapMs: number): number {
    const atMs = Math.max(nowMs, this.#nextAtMs) + gapMs;
    this.#nextAtMs = Math.min(atMs, nowMs + WAIT_MAX_MS);
    return atMs;
  }
}

/** Bounds the cost of all failing lanes: they share 100 probes a second, and their jobs run one after another. */
export class ProbeBudget {
  readonly #turns = new Turns();
  #nextProbeAtMs = 0;

  isFree(nowMs: number): boolean {
    return this.#nextProbeAtMs < nowMs + SAVED_MS;
  }

  take(nowMs: number): void {
    this.#nextProbeAtMs = Math.max(nowMs, this.#nextProbeAtMs) + GAP_MS;
  }

  /** When the job of one more failing lane may run: of a thousand that run together, ten would find a probe. */
  nextTurnMs(nowMs: number): number {
    return this.#turns.after(nowMs, GAP_MS);
  }
}
