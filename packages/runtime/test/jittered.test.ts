import { expect, test } from '@jest/globals';
import { jittered } from '@runhook/runtime';

test('a jittered wait is between half of its length and its full length', () => {
  expect([0, 0.5, 1].map((random) => jittered(1_000, random))).toEqual([500, 750, 1_000]);
  expect(new Set(Array.from({ length: 20 }, () => jittered(5_000))).size).toBeGreaterThan(15);
});
