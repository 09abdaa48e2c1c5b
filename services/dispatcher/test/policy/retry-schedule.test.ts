import { describe, expect, test } from '@jest/globals';
import { retryAfterMs, retryDelayMs } from '../../src/policy/outcome.ts';

const policy = { retriesMax: 5, baseDelayMs: 30_000 };
const after = (attempts: number) => ({ cycle: 0, attemptCount: attempts });

/** Lowest, middle and highest wait before each retry in seconds; null when the delivery has failed. */
test.each([
  [1, 24, 30, 36],
  [2, 48, 60, 72],
  [3, 96, 120, 144],
  [4, 192, 240, 288],
  [5, 384, 480, 576],
  [6, null, null, null],
])('the wait after attempt %i: minimum %s, mean %s, maximum %s s', (attempts, lowest, middle, highest) => {
  const waits = [0, 0.5, 1].map((random) => retryDelayMs(policy, after(attempts), random));
  expect(waits).toEqual([lowest, middle, highest].map((seconds) => seconds && seconds * 1_000));
});

test('without retries the first attempt is the last one', () => {
  expect(retryDelayMs({ ...policy, retriesMax: 0 }, after(1), 0.5)).toBeNull();
});

describe('Retry-After', () => {
  const nowMs = Date.UTC(2026, 0, 31, 12);
  test.each([
    [429, '120', 120_000],
    [503, ' 0 ', 0],
    [503, 'Sat, 31 Jan 2026 12:01:00 GMT', 60_000],
    [503, 'Sat, 31 Jan 2026 11:00:00 GMT', 0],
    [429, '86400', 3_600_000],
    [503, '9'.repeat(30), 3_600_000],
    [503, 'Sun, 01 Feb 2026 12:00:00 GMT', 3_600_000],
    [500, '120', null],
    [429, 'soon', null],
    [429, '-5', null],
    [429, '', null],
  ])('of a response %i with "%s" is %s ms', (statusCode, text, waitMs) => {
    expect(retryAfterMs(statusCode, { 'retry-after': text }, nowMs)).toBe(waitMs);
  });

  test('is null without the header', () => {
    expect(retryAfterMs(503, {}, nowMs)).toBeNull();
  });
});
