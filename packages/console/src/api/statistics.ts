/** Deliveries that were created in the time, by their state now. */
export interface StatisticsCounts {
  delivered_count: number;
  failed_count: number;
  pending_count: number;
  cancelled_count: number;
  attempt_count: number;
  /** How long the endpoint took; null when it never answered. */
  p50_ms: number | null;
  p95_ms: number | null;
}

export interface StatisticsBucket extends StatisticsCounts {
  /** Microseconds since the epoch, as digits. */
  hour_start: string;
}

export interface Statistics {
  since: string;
  until: string;
  totals: StatisticsCounts;
  /** One an hour, oldest first; the last is not over. */
  buckets: StatisticsBucket[];
}
