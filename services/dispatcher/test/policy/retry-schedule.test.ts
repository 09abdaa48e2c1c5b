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

  test.each([
    ['asctime', 'Sat Jan 31 12:01:00 2026', 60_000],
    ['asctime with a day of one digit', 'Sun Feb  1 12:00:00 2026', 3_600_000],
    ['RFC 850', 'Saturday, 31-Jan-26 12:02:00 GMT', 120_000],
    ['a date in another zone', 'Sat, 31 Jan 2026 12:01:00 +0100', null],
    ['a local time', '2026-01-31T12:01:00', null],
    ['more digits than a number has', '9'.repeat(400), 3_600_000],
  ])('as %s is read', (_case, text, waitMs) => {
    expect(retryAfterMs(503, { 'retry-after': text }, nowMs)).toBe(waitMs);
  });

  test('as a date counts from the Date of the response, and from the clock of the dispatcher without one', () => {
    const wait = (date?: string) =>
      retryAfterMs(
        503,
        { 'retry-after': 'Sat, 31 Jan 2026 12:01:00 GMT', ...(date !== undefined && { date }) },
        nowMs,
      );
    expect(wait('Sat, 31 Jan 2026 12:00:30 GMT')).toBe(30_000);
    expect(wait('Sat Jan 31 11:59:00 2026')).toBe(120_000);
    expect(wait('Sat, 31 Jan 2026 13:00:00 GMT')).toBe(0);
    expect(wait('yesterday')).toBe(60_000);
  });

  test('is null without the header', () => {
    expect(retryAfterMs(503, {}, nowMs)).toBeNull();
  });
});
