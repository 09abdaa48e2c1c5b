import { type Database, runStatement } from '@runhook/database';
import {
  type StatisticsBucket,
  type StatisticsCounts,
  type StatisticsView,
  statisticsView,
} from '../domain/statistics-view.ts';
import { microsOf } from './micros.ts';

/** The beginning of the first hour: the hours asked for end with the one that is now. */
const SINCE = `(date_bin('1 hour', now(), timestamptz 'epoch') - ($2::int - 1) * interval '1 hour')`;

const dayOf = (moment: string) => `(${moment} AT TIME ZONE 'UTC')::date`;

// Deliveries only: they know their latest attempt, and a day of attempts holds those of every webhook. One day more is
// read on each side, as in the list of deliveries; the bounds are stable expressions, so the server leaves the other
// partitions alone before it begins. The histogram, small whatever the traffic, is what the percentiles are taken from:
// to sort a million durations would take longer than to count them. The row without an hour has the totals and is
// there even when nothing else is.
const SELECT = `
  WITH histogram AS MATERIALIZED (
    SELECT date_bin('1 hour', d.created_at, timestamptz 'epoch') AS hour, d.status,
      CASE WHEN d.http_status_code NOT IN (0, 502) THEN d.duration_ms END AS duration_ms,
      count(*) AS deliveries, sum(d.attempt_count) AS attempts
    FROM deliveries d
    WHERE d.subscription_id = $1 AND d.created_at >= ${SINCE}
      AND d.day >= ${dayOf(SINCE)} - 1 AND d.day <= ${dayOf('now()')} + 1
    GROUP BY 1, 2, 3
  ), counts AS (
    SELECT hour,
      coalesce(sum(deliveries) FILTER (WHERE status = 'delivered'), 0)::int AS delivered_count,
      coalesce(sum(deliveries) FILTER (WHERE status = 'failed'), 0)::int AS failed_count,
      coalesce(sum(deliveries) FILTER (WHERE status = 'pending'), 0)::int AS pending_count,
      coalesce(sum(deliveries) FILTER (WHERE status = 'cancelled'), 0)::int AS cancelled_count,
      coalesce(sum(attempts), 0)::int AS attempt_count
    FROM histogram GROUP BY GROUPING SETS ((hour), ())
  ), ranked AS (
    SELECT hour, duration_ms, sum(sum(deliveries)) OVER (PARTITION BY hour ORDER BY duration_ms) AS rank,
      sum(sum(deliveries)) OVER (PARTITION BY hour) AS measured
    FROM histogram WHERE duration_ms IS NOT NULL
    GROUP BY GROUPING SETS ((hour, duration_ms), (duration_ms))
  ), percentiles AS (
    SELECT hour, min(duration_ms) FILTER (WHERE rank >= measured * 0.5) AS p50_ms,
      min(duration_ms) FILTER (WHERE rank >= measured * 0.95) AS p95_ms
    FROM ranked GROUP BY hour
  )
  SELECT ${microsOf('hour')} AS hour_start, delivered_count, failed_count, pending_count, cancelled_count, attempt_count,
    p50_ms, p95_ms, ${microsOf(SINCE)} AS since, ${microsOf('now()')} AS until
  FROM counts LEFT JOIN percentiles USING (hour)
  WHERE hour IS NOT NULL
  UNION ALL
  SELECT NULL, delivered_count, failed_count, pending_count, cancelled_count, attempt_count,
    (SELECT p50_ms FROM percentiles WHERE hour IS NULL), (SELECT p95_ms FROM percentiles WHERE hour IS NULL),
    ${microsOf(SINCE)}, ${microsOf('now()')}
  FROM counts WHERE hour IS NULL`;

type Row = StatisticsCounts & { hour_start: string | null; since: string; until: string } & {
  [column: string]: unknown;
};

/** A subscription's hours up to now, and their totals. */
export async function readStatistics(
  pool: Database['pool'],
  { subscriptionId, hours }: { subscriptionId: string; hours: number },
): Promise<StatisticsView> {
  const rows = await runStatement<Row>(pool, SELECT, [subscriptionId, hours]);
  const total = rows.find(({ hour_start }) => hour_start === null) as Row;
  const found: StatisticsBucket[] = rows.flatMap((row) =>
    row.hour_start === null ? [] : [{ hour_start: row.hour_start, ...countsOf(row) }],
  );
  return statisticsView({ since: total.since, until: total.until, hours }, countsOf(total), found);
}

function countsOf(row: StatisticsCounts): StatisticsCounts {
  return {
    delivered_count: row.delivered_count,
    failed_count: row.failed_count,
    pending_count: row.pending_count,
    cancelled_count: row.cancelled_count,
    attempt_count: row.attempt_count,
    p50_ms: row.p50_ms,
    p95_ms: row.p95_ms,
  };
}
