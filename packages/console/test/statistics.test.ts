import { expect, test } from '@jest/globals';
import { createAxis, scaleToPixels, splitAtGaps, stackSlices } from '../src/webhook/statistics/scale.ts';
import {
  describeTotals,
  formatHourCounts,
  formatHourLatency,
  formatShare,
} from '../src/webhook/statistics/summary.ts';

const counts = {
  delivered_count: 0,
  failed_count: 0,
  pending_count: 0,
  cancelled_count: 0,
  attempt_count: 0,
  p50_ms: null,
  p95_ms: null,
};

test.each([
  [0, [0, 1]],
  [1, [0, 1]],
  [3, [0, 1, 2, 3]],
  [4, [0, 1, 2, 3, 4]],
  [5, [0, 2, 4, 6]],
  [97, [0, 50, 100]],
  [450, [0, 200, 400, 600]],
  [10_000, [0, 5_000, 10_000]],
])('the axis for a maximum of %i has round ticks that include it', (highest, ticks) => {
  const axis = createAxis(highest);
  expect(axis).toEqual({ max: ticks.at(-1), ticks });
});

test('the axis includes any maximum, in at most five steps', () => {
  for (let highest = 0; highest < 3_000; highest++) {
    const { max, ticks } = createAxis(highest);
    expect(max).toBeGreaterThanOrEqual(highest);
    expect(ticks.length).toBeLessThanOrEqual(6);
  }
});

test('scaleToPixels() maps a value linearly to pixels', () => {
  expect(scaleToPixels(0, 10, 100, 0)).toBe(100);
  expect(scaleToPixels(10, 10, 100, 0)).toBe(0);
  expect(scaleToPixels(2.5, 10, 100, 0)).toBe(75);
});

test('a line is interrupted where an hour has no value', () => {
  expect(splitAtGaps([1, 2, null, 3, null, null, 4])).toEqual([
    [
      { index: 0, value: 1 },
      { index: 1, value: 2 },
    ],
    [{ index: 3, value: 3 }],
    [{ index: 6, value: 4 }],
  ]);
  expect(splitAtGaps([null])).toEqual([]);
});

test('an outcome without deliveries has no slice in a bar', () => {
  expect(
    stackSlices([
      ['delivered', 4],
      ['failed', 0],
      ['pending', 2],
    ]),
  ).toEqual([
    { name: 'delivered', count: 4, offset: 0 },
    { name: 'pending', count: 2, offset: 4 },
  ]);
});

test('the deliveries and response times of a period are summarized as text', () => {
  const totals = { ...counts, delivered_count: 3, failed_count: 1, p50_ms: 84, p95_ms: 1_240 };
  expect(describeTotals({ totals }, 24)).toBe(
    '4 deliveries in the last 24 hours: 3 delivered (75%), 1 failed. Half of the responses took up to 84 ms, 95 % up to 1.2 s.',
  );
  expect(describeTotals({ totals: counts }, 168)).toBe('No deliveries in the last 7 days.');
});

test('a share is 100 % only if it includes all deliveries, and 0 % only if it includes none', () => {
  expect(formatShare(99_999, 100_000)).toBe('over 99.9%');
  expect(formatShare(1, 100_000)).toBe('under 0.1%');
  expect(formatShare(5, 5)).toBe('100%');
  expect(formatShare(0, 5)).toBe('0%');
});

test('an hour is described with its non-zero counts, and with its response times', () => {
  expect(formatHourCounts({ ...counts, delivered_count: 2, cancelled_count: 1 })).toBe(
    '2 delivered, 1 cancelled',
  );
  expect(formatHourCounts(counts)).toBe('no deliveries');
  expect(formatHourLatency({ ...counts, p50_ms: 5, p95_ms: 9 })).toBe('p50 5 ms, p95 9 ms');
  expect(formatHourLatency(counts)).toBe('no responses');
});
