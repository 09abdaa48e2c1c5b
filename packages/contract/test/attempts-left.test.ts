import { expect, test } from '@jest/globals';
import { attemptsLeft } from '@runhook/contract';

test.each([
  ['all of them before the first', 5, 0, 0, 6],
  ['one less after each', 5, 0, 2, 4],
  ['none when the retries are used up', 5, 0, 6, 0],
  ['all of them again in a new cycle', 5, 6, 6, 6],
  ['those of the current cycle only', 5, 6, 8, 4],
  ['one without retries', 0, 0, 0, 1],
  ['zero, not less, after the limit was lowered', 1, 0, 4, 0],
])(
  'attemptsLeft() counts the remaining attempts of a cycle: %s',
  (_case, retriesMax, cycle, attemptCount, left) => {
    expect(attemptsLeft({ retriesMax }, { cycle, attemptCount })).toBe(left);
  },
);
