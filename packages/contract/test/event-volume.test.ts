import { describe, expect, test } from '@jest/globals';
import { lowestRateLimit } from '@runhook/contract';

const DAY_SECONDS = 86_400;
const days = (...counts: number[]) => counts.map((count) => ({ count, seconds: DAY_SECONDS }));

describe('the lowest rate limit for a volume of events', () => {
  test('is their average rate if no span has many more', () => {
    expect(lowestRateLimit(days(86_400, 86_400, 86_400), 100_000)).toBe(1);
    expect(lowestRateLimit(days(0, 259_200, 0), 300_000)).toBe(1);
  });

  test('sends so many events of consecutive busy spans that the limit of waiting deliveries is not reached', () => {
    expect(lowestRateLimit(days(0, 964_000, 964_000, 0, 0, 0, 0), 200_000)).toBe(10);
  });

  test('is rounded up to three decimals', () => {
    expect(lowestRateLimit(days(1, 0), 100)).toBe(0.001);
  });

  test('is 0 without events', () => {
    expect(lowestRateLimit([], 100)).toBe(0);
    expect(lowestRateLimit(days(0, 0), 100)).toBe(0);
  });
});
