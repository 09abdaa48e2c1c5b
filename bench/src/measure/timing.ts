/** Returns milliseconds on the machine's monotonic clock, which all processes share. */
export function sharedNowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

/**
 * Returns the times at which events should be published, in milliseconds from the start: evenly spaced and fixed before
 * the run.
 */
export function evenSchedule(ratePerSecond: number, durationMs: number): Float64Array {
  const count = Math.max(1, Math.round((ratePerSecond * durationMs) / 1000));
  return Float64Array.from({ length: count }, (_, index) => (index * 1000) / ratePerSecond);
}

/** Returns how many events are due. The schedule must be in ascending order. */
export function dueCount(schedule: Float64Array, elapsedMs: number, alreadyDue = 0): number {
  let due = alreadyDue;
  while (due < schedule.length && (schedule[due] as number) <= elapsedMs) due += 1;
  return due;
}

/** Returns the value at or below which the share of the values lies (nearest rank), or NaN if there are none. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN;
  const rank = Math.ceil(share * sorted.length);
  return sorted[Math.min(Math.max(rank, 1), sorted.length) - 1] as number;
}

/** Returns the median; for an even number of values the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

export interface Spread {
  min: number;
  p50: number;
  p99: number;
  max: number;
}

export function spreadOf(values: ArrayLike<number>): Spread {
  const sorted = Float64Array.from(values).sort();
  return {
    min: percentile(sorted, 0),
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    max: percentile(sorted, 1),
  };
}
