/** How many hours of statistics one call may ask for: a week. */
export const STATISTICS_HOURS_MAX = 168;
export const STATISTICS_HOURS_DEFAULT = 24;

/** What became of the deliveries that were created in a span of time, as of now. */
export interface StatisticsCounts {
  delivered_count: number;
  failed_count: number;
  pending_count: number;
  cancelled_count: number;
  /** Made so far for these deliveries. */
  attempt_count: number;
  /**
   * How long the latest attempt of a delivery took, by nearest rank: the median. Attempts that never reached the
   * endpoint (502) tell nothing of it and are left out; one that timed out counts with the time it was given. Null
   * when there is none.
   */
  p50_ms: number | null;
  /** As `p50_ms`: 95 of 100 were as fast or faster. */
  p95_ms: number | null;
}

export interface StatisticsBucket extends StatisticsCounts {
  /** The beginning of a UTC hour, in microseconds since the epoch, as digits. */
  hour_start: string;
}

/** Answer of `GET …/statistics`; times are microseconds since the epoch, as digits. */
export interface StatisticsView {
  /** The beginning of the first hour. */
  since: string;
  /** The moment that the numbers are of, in the last hour. */
  until: string;
  totals: StatisticsCounts;
  /** Every hour, the oldest first, also those without deliveries. */
  buckets: StatisticsBucket[];
}

const HOUR_MICROS = 3_600_000_000n;

const NOTHING: StatisticsCounts = {
  delivered_count: 0,
  failed_count: 0,
  pending_count: 0,
  cancelled_count: 0,
  attempt_count: 0,
  p50_ms: null,
  p95_ms: null,
};

/** @param found the hours that have deliveries, in any order */
export function statisticsView(
  span: { since: string; until: string; hours: number },
  totals: StatisticsCounts,
  found: readonly StatisticsBucket[],
): StatisticsView {
  const { since, until, hours } = span;
  const byHour = new Map(found.map((bucket) => [bucket.hour_start, bucket]));
  const buckets = Array.from({ length: hours }, (_, index) => {
    const hour_start = String(BigInt(since) + BigInt(index) * HOUR_MICROS);
    return byHour.get(hour_start) ?? { hour_start, ...NOTHING };
  });
  return { since, until, totals, buckets };
}
