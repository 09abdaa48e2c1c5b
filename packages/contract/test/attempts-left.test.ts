import { expect, test } from '@jest/globals';
import { attemptsLeft } from '@runhook/contract';

test.each([
  ['1 + retriesMax before the first attempt', 5, 0, 0, 6],
  ['one less after each attempt', 5, 0, 2, 4],
  ['none when the retries are used up', 5, 0, 6, 0],
  ['1 + retriesMax at the beginning of a new cycle', 5, 6, 6, 6],
  ['without the attempts of previous cycles', 5, 6, 8, 4],
  ['one before the first attempt if retriesMax is 0', 0, 0, 0, 1],
  ['zero, not less, after the limit was lowered', 1, 0, 4, 0],
])(
  'attemptsLeft() counts the remaining attempts of a cycle: %s',
  (_case, retriesMax, cycle, attemptCount, left) => {
    expect(attemptsLeft({ retriesMax }, { cycle, attemptCount })).toBe(left);
  },
);
