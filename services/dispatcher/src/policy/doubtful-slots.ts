/**
 * A thousand endpoints that nobody has heard of do not all get their connection in the moment in which they come, beside
 * everybody else's events: a few do, one more with each that answers, and one more every so often.
 */
const AT_FIRST = 32;
const OPENS_EVERY_MS = 50;
/** After so long without any of them it begins with few again. */
const REST_MS = 1_000;

/** Slots of all lanes together that do not answer: what they hold is bounded, however many they are. */
export class DoubtfulSlots {
  readonly #max: number;
  readonly #nowMs: () => number;
  #taken = 0;
  /** When each of those that are taken was, added up. */
  #startsMs = 0;
  /** How many there may be, without the time that has gone by since the first. */
  #open = AT_FIRST;
  #sinceMs = 0;
  #lastEndMs = Number.NEGATIVE_INFINITY;

  constructor(max: number, nowMs: () => number) {
    this.#max = max;
    this.#nowMs = nowMs;
  }

  free(): number {
    return Math.max(0, this.#limit() - this.#taken);
  }

  /** @param startMs now, to be given back with it */
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
   * How far apart the next ones should come, while none is free: at the pace at which they become so. What nobody has answered
   * yet takes at least as long as it has been waited for.
   * @param heldMs what an attempt takes, as far as is known
   */
  paceMs(heldMs: number): number {
    const limit = this.#limit();
    const meanMs = this.#nowMs() - this.#startsMs / this.#taken;
    const paceMs = Math.max(heldMs, meanMs) / limit;
    return limit < this.#max ? Math.min(paceMs, OPENS_EVERY_MS) : paceMs;
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
