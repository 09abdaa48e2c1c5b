import { beforeEach, describe, expect, test } from '@jest/globals';
import { LaneRate } from '../src/lane-rate.ts';
import type { Draw, RateUse } from '../src/record/rate-buckets.ts';

let nowMs: number;
/** Results of the next draws; null for a subscription without a limit. */
let draws: (Partial<Draw> | null)[];
/** Draws and returns of tokens, in order. */
let calls: string[];
beforeEach(() => {
  nowMs = 1_000;
  draws = [];
  calls = [];
});

function laneRate(rate: number | null): LaneRate {
  const record = {
    async drawTokens(_subscriptionId: string, max: number) {
      calls.push(`draw ${max}`);
      const drawn = draws.shift();
      return drawn ? { count: 0, left: 0, rate: 5, drawnAtMs: nowMs, ...drawn } : null;
    },
    async settleTokens(_subscriptionId: string, { unused, hasWaited }: RateUse) {
      calls.push(`return ${unused}${hasWaited ? ', has waited' : ''}`);
    },
  };
  const laneRate = new LaneRate({ record, subscriptionId: 'wsu_1', nowMs: () => nowMs });
  laneRate.update(rate);
  return laneRate;
}

describe('a lane without a limit', () => {
  test('has tokens for every attempt, and executes no statement', async () => {
    const rate = laneRate(null);
    expect(await rate.grant(64)).toBe(64);
    const token = rate.take();
    if (token) rate.putBack(token);
    expect(token).not.toBeNull();
    expect([rate.waitMs(), rate.resumeDelayMs()]).toEqual([0, 0]);
    await rate.close(false);
    expect(calls).toEqual([]);
    expect(rate.isExhausted).toBe(false);
  });

  test('draws once a delivery shows that its subscription is limited', async () => {
    const rate = laneRate(null);
    expect(await rate.grant(2)).toBe(2);
    rate.update(5);
    draws = [{ count: 1 }];
    expect(await rate.grant(2, 2)).toBe(1);
    expect(rate.take()).not.toBeNull();
    expect(rate.take()).toBeNull();
  });
});

describe('a lane with a limit', () => {
  test('takes only as many deliveries as it has drawn tokens', async () => {
    const rate = laneRate(5);
    draws = [{ count: 5, left: 0.5 }];
    expect(await rate.grant(64)).toBe(5);
    // Tokens that it has are used before others are drawn.
    expect(await rate.grant(3)).toBe(3);
    expect(calls).toEqual(['draw 64']);
  });

  test('without tokens waits until a draw is worth a statement', async () => {
    const rate = laneRate(5);
    draws = [{ count: 0, left: 0.5 }, { count: 2 }];
    expect(await rate.grant(64)).toBe(0);
    const waitMs = rate.waitMs();
    expect(waitMs).toBeGreaterThan(0);
    nowMs += waitMs - 1;
    expect(await rate.grant(64)).toBe(0);
    nowMs += 1;
    expect(await rate.grant(64)).toBe(2);
    expect(calls).toEqual(['draw 64', 'draw 64']);
  });

  test('draws again at once if its draw did not drain the bucket', async () => {
    const rate = laneRate(100);
    draws = [
      { count: 2, left: 90, rate: 100 },
      { count: 2, left: 88, rate: 100 },
    ];
    expect(await rate.grant(2)).toBe(2);
    rate.take();
    rate.take();
    expect([await rate.grant(2), rate.waitMs()]).toEqual([2, 0]);
  });

  test('replaces tokens that expired before their deliveries were taken, and returns them first', async () => {
    const rate = laneRate(5);
    draws = [{ count: 3, left: 0 }, { count: 2 }];
    expect(await rate.grant(3)).toBe(3);
    nowMs += 1_001;
    expect(await rate.grant(3, 3)).toBe(2);
    expect(calls).toEqual(['draw 3', 'return 3', 'draw 3']);
  });

  test('returns the tokens that were not used or were put back', async () => {
    const rate = laneRate(5);
    draws = [{ count: 3 }];
    await rate.grant(3);
    rate.take();
    const token = rate.take();
    if (token) rate.putBack(token);
    await rate.close(false);
    expect(calls).toEqual(['draw 3', 'return 2']);
  });

  test('is exhausted once it has no token, and records that deliveries waited only if the caller found one', async () => {
    for (const hasWaited of [false, true]) {
      const rate = laneRate(5);
      draws = [{ count: 1 }];
      expect([await rate.grant(64), rate.isExhausted]).toEqual([1, false]);
      rate.take();
      expect([await rate.grant(64), rate.isExhausted]).toEqual([0, true]);
      await rate.close(hasWaited);
    }
    expect(calls).toEqual(['draw 64', 'draw 64', 'return 0, has waited']);
  });

  test('has no limit any more if the draw finds none', async () => {
    const rate = laneRate(5);
    draws = [null];
    expect(await rate.grant(64)).toBe(64);
    expect(await rate.grant(64)).toBe(64);
    expect(calls).toEqual(['draw 64']);
  });

  test('runs its job earlier than the draw if a late draw would lose tokens', async () => {
    const [slow, fast] = [laneRate(1), laneRate(10)];
    draws = [{ rate: 1 }, { rate: 10 }];
    await slow.grant(64);
    await fast.grant(64);
    expect(slow.resumeDelayMs()).toBe(slow.waitMs() - 200);
    expect(fast.resumeDelayMs()).toBe(fast.waitMs());
  });
});
