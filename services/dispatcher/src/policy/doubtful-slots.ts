import { Turns } from './probe-budget.ts';

/** Slow start: a thousand new endpoints that all connect at once delay the requests to others. */
const AT_FIRST = 32;
const OPENS_EVERY_MS = 50;
/** The slow start begins again after this time without an attempt. */
const REST_MS = 1_000;

/** Bounds the attempts in flight of all lanes that do not respond, whatever their number. */
export class DoubtfulSlots {
  readonly #max: number;
  readonly #nowMs: () => number;
  #taken = 0;
  /** Sum of the start times of the taken slots. */
  #startsMs = 0;
  /** The limit, without what the time since `#sinceMs` adds. */
  #open = AT_FIRST;
  #sinceMs = 0;
  readonly #turns = new Turns();
  #lastEndMs = Number.NEGATIVE_INFINITY;

  constructor(max: number, nowMs: () => number) {
    this.#max = max;
    this.#nowMs = nowMs;
  }

  free(): number {
    return Math.max(0, this.#limit() - this.#taken);
  }

  /** @param startMs the current time, which the caller passes to `giveBack` */
  take(startMs: number): void {
    if (this.#isRested(startMs)) {
      this.#open = AT_FIRST;
      this.#sinceMs = startMs;
    }
    this.#taken += 1;
    this.#startsMs += startMs;
  }

  giveBack(startMs: number, succeeded: boolean): void {
    this.#taken -= 1;
    this.#startsMs -= startMs;
    this.#lastEndMs = this.#nowMs();
    if (succeeded) this.#open += 1;
  }

  /**
   * Returns when one more lane may find a slot: now, or else one after another at the pace at which slots become free. A request without a
   * response takes at least as long as it has been in flight.
   * @param heldMs the usual duration of an attempt
   */
  nextTurnMs(heldMs: number): number {
    const now = this.#nowMs();
    if (this.free() > 0) return now;
    const limit = this.#limit();
    const meanMs = now - this.#startsMs / this.#taken;
    const paceMs = Math.max(heldMs, meanMs) / limit;
    return this.#turns.after(now, limit < this.#max ? Math.min(paceMs, OPENS_EVERY_MS) : paceMs);
  }

  #limit(): number {
    const now = this.#nowMs();
    if (this.#isRested(now)) return Math.min(this.#max, AT_FIRST);
    return Math.min(this.#max, this.#open + Math.floor((now - this.#sinceMs) / OPENS_EVERY_MS));
  }

  #isRested(now: number): boolean {
    return this.#taken === 0 && now - this.#lastEndMs > REST_MS;
  }
}
