import { describe, expect, test } from '@jest/globals';
import { DrawnTokens, drawDelayMs, REFILL_FACTOR, resumeEarlyMs } from '../../src/policy/rate-limit.ts';

const RATES = [0.1, 0.133, 0.5, 0.7, 1, 1.0327, 1.5, 2, 5, 33.3, 64, 100, 1_000];
const WINDOW_MS = 60_000;

/** The bucket that record/rate-buckets.ts implements in SQL. */
class Bucket {
  readonly #rate: number;
  #tokens: number;
  #updatedAtMs = 0;

  constructor(rate: number) {
    this.#rate = rate;
    this.#tokens = Math.max(1, rate);
  }

  draw(max: number, nowMs: number): { count: number; left: number } {
    const gained = (Math.max(0, nowMs - this.#updatedAtMs) / 1_000) * this.#rate * REFILL_FACTOR;
    this.#tokens = Math.min(Math.max(1, this.#rate), this.#tokens + gained);
    this.#updatedAtMs = nowMs;
    const count = Math.min(Math.floor(this.#tokens), max);
    this.#tokens -= count;
    return { count, left: this.#tokens };
  }

  giveBack(count: number): void {
    this.#tokens = Math.min(Math.max(1, this.#rate), this.#tokens + count);
  }
}

/** Returns the largest number of requests in any 60 s, both ends included. */
function maxInWindow(sentAtMs: readonly number[]): number {
  const sorted = [...sentAtMs].sort((a, b) => a - b);
  let first = 0;
  let max = 0;
  for (const [index, atMs] of sorted.entries()) {
    while ((sorted[first] ?? 0) < atMs - WINDOW_MS) first += 1;
    max = Math.max(max, index - first + 1);
  }
  return max;
}

/** Returns a sequence of numbers from 0 to 1 that is the same in each run. */
function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe.each(RATES)('at %p requests per second', (rate) => {
  const permitted = rate * 60 + Math.max(1, rate);

  test('requests that begin as late as their tokens permit, and then at once, keep the rule', () => {
    const bucket = new Bucket(rate);
    const drawn = new DrawnTokens();
    const sent: number[] = [];
    drawn.add(bucket.draw(2_000, 0).count, 0);
    // The last millisecond at which the first tokens are valid.
    for (let nowMs = 1; nowMs <= 1_000; nowMs += 1) drawn.add(bucket.draw(2_000, nowMs).count, nowMs);
    for (let nowMs = 1_000; nowMs <= 130_000; nowMs += 1) {
      drawn.add(bucket.draw(2_000, nowMs).count, nowMs);
      while (drawn.take(nowMs) !== null) sent.push(nowMs);
    }
    expect(maxInWindow(sent)).toBeLessThanOrEqual(permitted);
  });

  test('two dispatchers that delay, lose and return tokens keep the rule', () => {
    const random = pseudoRandom(7);
    const bucket = new Bucket(rate);
    const sent: number[] = [];
    let dispatchers = [new DrawnTokens(), new DrawnTokens()];
    for (let nowMs = 0; nowMs < 200_000; nowMs += Math.ceil(random() * 40)) {
      const drawn = dispatchers[random() < 0.5 ? 0 : 1] as DrawnTokens;
      const action = random();
      // PostgreSQL executes the draw some time after the dispatcher's start of it.
      if (action < 0.4) drawn.add(bucket.draw(Math.ceil(random() * 64), nowMs).count, nowMs - random() * 30);
      else if (action < 0.97) while (drawn.take(nowMs) !== null) sent.push(nowMs);
      else if (action < 0.99) bucket.giveBack(drawn.remove(random() < 0.5 ? 'all' : 'expired', nowMs));
      else dispatchers = [new DrawnTokens(), dispatchers[0] as DrawnTokens];
    }
    expect(maxInWindow(sent)).toBeLessThanOrEqual(permitted);
  });

  test('a lane that draws when the delay of its last draw is over gets 95 % of its rate if that is 1 or more', () => {
    const random = pseudoRandom(11);
    const bucket = new Bucket(rate);
    let count = 0;
    let nowMs = 0;
    while (nowMs < 600_000) {
      const drawn = bucket.draw(64, nowMs);
      count += drawn.count;
      if (drawn.count === 64) continue;
      const delayMs = drawDelayMs(rate, drawn.left);
      // The job of the lane is at most 200 ms late, of which it starts as many earlier as its bucket cannot absorb.
      const lateMs = Math.max(0, random() * 200 - resumeEarlyMs(rate));
      nowMs += Math.max(1, delayMs) + lateMs + 2;
    }
    expect(count / (nowMs / 1_000)).toBeGreaterThanOrEqual(rate * (rate < 1 ? 0.9 : 0.95));
  });
});

describe('drawn tokens', () => {
  test('are taken until a second after their draw began', () => {
    const drawn = new DrawnTokens();
    drawn.add(2, 100);
    expect(drawn.count(1_100)).toBe(2);
    expect(drawn.take(1_100)).toEqual({ untilMs: 1_100 });
    expect(drawn.count(1_101)).toBe(0);
    expect(drawn.take(1_101)).toBeNull();
    expect(drawn.remove('expired', 1_101)).toBe(1);
  });

  test('that were put back keep the end of their validity', () => {
    const drawn = new DrawnTokens();
    drawn.add(1, 0);
    const token = drawn.take(500);
    if (token) drawn.putBack(token);
    expect(drawn.count(1_000)).toBe(1);
    expect(drawn.count(1_001)).toBe(0);
  });

  test('are all removed to be returned', () => {
    const drawn = new DrawnTokens();
    drawn.add(1, 0);
    drawn.add(2, 1_500);
    expect(drawn.remove('all', 2_000)).toBe(3);
    expect(drawn.remove('all', 2_000)).toBe(0);
  });
});
