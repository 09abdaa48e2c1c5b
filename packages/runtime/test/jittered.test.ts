import { expect, test } from '@jest/globals';
import { withJitter } from '@runhook/runtime';

test('a jittered wait is between half of its length and its full length', () => {
  expect([0, 0.5, 1].map((random) => withJitter(1_000, random))).toEqual([500, 750, 1_000]);
  expect(new Set(Array.from({ length: 20 }, () => withJitter(5_000))).size).toBeGreaterThan(15);
});
