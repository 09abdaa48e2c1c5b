/*
 * Policy of `rate_limit` (docs/contract.md#rate-limit): in any 60 s at most `rate × 60 + max(1, rate)` requests, by any
 * number of dispatchers. Each request needs a token of the subscription's bucket in PostgreSQL (record/rate-buckets.ts),
 * and must begin within HOLD_MS of the draw. The requests of 60 s therefore have tokens that were drawn in 60 s and HOLD_MS:
 * at most `capacity + refill × (60 s + HOLD_MS)`. REFILL_FACTOR makes this the permitted number, and costs 1.6 % of the
 * rate. Tokens that are lost, as by the death of a dispatcher, or returned unused, never add a request.
 */

/** Time after the start of its draw until which a token may be used. */
const HOLD_MS = 1_000;
const WINDOW_MS = 60_000;

/** Tokens that a bucket gains for each one of its rate. */
export const REFILL_FACTOR = WINDOW_MS / (WINDOW_MS + HOLD_MS);

/** Seconds of refill after which a lane without tokens draws again, at most BATCH_MAX tokens: a draw costs a statement. */
const BATCH_SECONDS = 0.5;
/** Half of the slots of a lane's job: while it waits for these tokens, its other attempts end. */
const BATCH_MAX = 32;

/** Maximum tokens of a bucket; SQL computes the same. */
function bucketCapacity(rate: number): number {
  return Math.max(1, rate);
}

/** Returns the number of tokens that are worth a draw. A bucket holds twice as many, or one. */
function batchSize(rate: number): number {
  return Math.max(1, Math.min(BATCH_SECONDS * rate, BATCH_MAX));
}

/** Returns the milliseconds until a bucket with `tokens` has enough for the next draw. */
export function drawDelayMs(rate: number, tokens: number): number {
  return Math.max(0, Math.ceil(((batchSize(rate) - tokens) / (rate * REFILL_FACTOR)) * 1_000));
}

/** Maximum delay of the queue by which the job of a lane may run late without a loss. */
const LATENESS_MS = 200;

/**
 * Returns by how much earlier than its next draw the job of a lane must run. A bucket that would soon be full loses the
 * tokens of a late draw, so the job waits for the remaining time itself.
 */
export function resumeEarlyMs(rate: number): number {
  const untilFullMs = ((bucketCapacity(rate) - batchSize(rate)) / rate) * 1_000;
  return Math.max(0, LATENESS_MS - untilFullMs);
}

/** A token of a bucket for one request. */
export interface RateToken {
  /** End of its validity in milliseconds. */
  readonly untilMs: number;
}

/** Tokens that a dispatcher has drawn and not used. */
export class DrawnTokens {
  /** Oldest first. */
  #tokens: RateToken[] = [];

  /** @param drawnAtMs a time before PostgreSQL executed the draw */
  add(count: number, drawnAtMs: number): void {
    for (let added = 0; added < count; added++) this.#tokens.push({ untilMs: drawnAtMs + HOLD_MS });
  }

  /** Puts a token back that was taken and not used. */
  putBack(token: RateToken): void {
    this.#tokens.unshift(token);
  }

  /** Returns the number of tokens that are valid. */
  count(nowMs: number): number {
    return this.#tokens.filter(({ untilMs }) => untilMs >= nowMs).length;
  }

  /** Takes the valid token that expires first; null if there is none. */
  take(nowMs: number): RateToken | null {
    const index = this.#tokens.findIndex(({ untilMs }) => untilMs >= nowMs);
    return index < 0 ? null : (this.#tokens.splice(index, 1)[0] ?? null);
  }

  /** Removes the expired tokens, or all. Returns their number: they can be returned to the bucket, however old they are. */
  remove(which: 'expired' | 'all', nowMs: number): number {
    const before = this.#tokens.length;
    this.#tokens = which === 'all' ? [] : this.#tokens.filter(({ untilMs }) => untilMs >= nowMs);
    return before - this.#tokens.length;
  }
}
