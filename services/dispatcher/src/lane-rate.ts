import { DrawnTokens, drawDelayMs, type RateToken, resumeEarlyMs } from './policy/rate-limit.ts';
import type { DispatchRecord } from './record/dispatch-record.ts';

export interface LaneRateOptions {
  record: Pick<DispatchRecord, 'drawTokens' | 'settleTokens'>;
  subscriptionId: string;
  nowMs?: () => number;
}

/** A token for an attempt while the subscription has no limit. */
const UNLIMITED: RateToken = { untilMs: Number.POSITIVE_INFINITY };

/** Rate limit of a subscription during a pass of its lane's job (policy/rate-limit.ts). */
export class LaneRate {
  readonly #options: LaneRateOptions;
  readonly #nowMs: () => number;
  readonly #tokens = new DrawnTokens();
  /** Requests per second; null without a limit, which costs no statement. */
  #rate: number | null = null;
  /** Time from which a draw is worth its statement. */
  #drawAtMs = 0;
  #isExhausted = false;

  constructor(options: LaneRateOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Notes the limit of the subscription as it was last read. */
  update(rate: number | null): void {
    this.#rate = rate;
  }

  /**
   * Returns how many of `max` attempts have tokens, and draws tokens if fewer than `min` have one.
   * @param min 1 for the number of deliveries to take; `max` for deliveries that are taken
   */
  async grant(max: number, min = 1): Promise<number> {
    if (this.#rate === null || max === 0) return max;
    const count = this.#tokens.count(this.#nowMs());
    if (count < min) await this.#draw(max - count);
    if (this.#rate === null) return max;
    const granted = Math.min(max, this.#tokens.count(this.#nowMs()));
    this.#isExhausted ||= granted === 0;
    return granted;
  }

  /** Takes the token of an attempt that begins now; null if there is none. */
  take(): RateToken | null {
    return this.#rate === null ? UNLIMITED : this.#tokens.take(this.#nowMs());
  }

  /** Must be called if an attempt did not begin. */
  putBack(token: RateToken): void {
    if (token !== UNLIMITED) this.#tokens.putBack(token);
  }

  /** Returns the milliseconds until the next draw; 0 if the lane does not wait for tokens. */
  waitMs(): number {
    const nowMs = this.#nowMs();
    const waits = this.#rate !== null && this.#tokens.count(nowMs) === 0;
    return waits ? Math.max(0, this.#drawAtMs - nowMs) : 0;
  }

  /** Returns the minimum delay of the job of the lane. */
  resumeDelayMs(): number {
    return this.#rate === null ? 0 : Math.max(0, this.waitMs() - resumeEarlyMs(this.#rate));
  }

  /** Whether there was no token at some time; deliveries may have waited for one. */
  get isExhausted(): boolean {
    return this.#isExhausted;
  }

  /** Returns the tokens that were not used, and records whether deliveries waited. */
  async close(hasWaited: boolean): Promise<void> {
    const unused = this.#tokens.remove('all', this.#nowMs());
    if (unused > 0 || hasWaited) await this.#settle(unused, hasWaited);
  }

  async #draw(max: number): Promise<void> {
    const { record, subscriptionId } = this.#options;
    const expired = this.#tokens.remove('expired', this.#nowMs());
    if (expired > 0) await this.#settle(expired, false);
    else if (this.#nowMs() < this.#drawAtMs) return;
    const drawn = await record.drawTokens(subscriptionId, max);
    this.#rate = drawn?.rate ?? null;
    if (drawn === null) return;
    this.#tokens.add(drawn.count, drawn.drawnAtMs);
    const isDrained = drawn.count < max;
    this.#drawAtMs = isDrained ? this.#nowMs() + drawDelayMs(drawn.rate, drawn.left) : 0;
  }

  async #settle(unused: number, hasWaited: boolean): Promise<void> {
    const { record, subscriptionId } = this.#options;
    await record.settleTokens(subscriptionId, { unused, hasWaited });
  }
}
