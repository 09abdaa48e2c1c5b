// SQL by hand: counts and ranks the log in one statement.
import { column, type Queryable, queryRows } from '@runhook/database';
import { LRUCache } from 'lru-cache';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import { integer, QueryReader } from '../http/query-parameters.ts';
import { requireSubscription } from '../subscriptions/require-subscription.ts';
import { type LogKey, microsOf } from './delivery.ts';
import { type ListDependencies, STATISTICS_PATH } from './routes.ts';

/** Maximum number of hours of one call: a week. */
export const STATISTICS_HOURS_MAX = 168;
export const STATISTICS_HOURS_DEFAULT = 24;

/** Current statuses of the deliveries that were created in a time span. */
export interface StatisticsCounts {
  delivered_count: number;
  failed_count: number;
  pending_count: number;
  cancelled_count: number;
  /** Number of attempts of these deliveries so far. */
  attempt_count: number;
  /**
   * Median duration of the latest attempts, by nearest rank. Attempts that did not reach the endpoint (a 502 of
   * Runhook's own) are omitted; an attempt that timed out counts with its timeout. Null if there are none.
   */
  p50_ms: number | null;
  /** The 95th percentile, as `p50_ms`. */
  p95_ms: number | null;
}

export interface StatisticsBucket extends StatisticsCounts {
  /** Start of a UTC hour, in microseconds since the epoch, as digits. */
  hour_start: string;
}

/** Response of `GET …/statistics`; times are microseconds since the epoch, as digits. */
export interface StatisticsView {
  /** Start of the first hour. */
  since: string;
  /** Time at which the deliveries were counted. The last bucket ends here. */
  until: string;
  totals: StatisticsCounts;
  /** Every hour, oldest first, including those without deliveries. */
  buckets: StatisticsBucket[];
}

/** Returns the results of a subscription's deliveries by hour until now. */
export function statisticsEndpoint({ prisma, reads }: ListDependencies): AccountEndpoint {
  const statistics = cacheSlowReads(
    ({ database, ...query }: WithDatabase<StatisticsQuery>) => readStatistics(database, query),
    {
      // The time is not part of the key, because `until` in the response shows it.
      keyOf: ({ subscriptionId, hours }) => `${subscriptionId} ${hours}`,
    },
  );
  return {
    method: 'GET',
    path: STATISTICS_PATH,
    access: READ_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const hours = reader.optional('hours', integer(1, STATISTICS_HOURS_MAX)) ?? STATISTICS_HOURS_DEFAULT;
      reader.check();
      const { id: subscriptionId } = await requireSubscription(prisma, request);
      const key = { accountId: request.account.id, subscriptionId };
      return { code: 200, data: await statistics({ ...key, hours, database: reads.databaseFor(request) }) };
    },
  };
}

export interface StatisticsQuery extends LogKey {
  hours: number;
}

/** A query with its database. Concurrent callers share one read, even if theirs would use another database. */
export type WithDatabase<Query> = Query & { database: Queryable };

/** Duration from which statistics are cached; those that are read in less time are not. */
const CACHED_FROM_MS = 200;
/** Time for which slow statistics are cached, as a multiple of the time of the read, up to the maximum below. */
const CACHE_TTL_FACTOR = 20;
const CACHE_TTL_MAX_MS = 60_000;
const CACHE_ENTRIES_MAX = 200;

interface CacheEntry<View> {
  view: Promise<View>;
  /** End of the validity by `nowMs`; infinite while the statistics are being read. */
  expiresAtMs: number;
}

/** Reads statistics; concurrent calls with one key share a read, and slow results are cached for a limited time. */
export function cacheSlowReads<Query, View>(
  read: (query: Query) => Promise<View>,
  { keyOf, nowMs = () => performance.now() }: { keyOf: (query: Query) => string; nowMs?: () => number },
): (query: Query) => Promise<View> {
  const cache = new LRUCache<string, CacheEntry<View>>({ max: CACHE_ENTRIES_MAX });

  return (query) => {
    const key = keyOf(query);
    const entry = cache.get(key);
    if (entry && nowMs() < entry.expiresAtMs) return entry.view;
    const startedAtMs = nowMs();
    const newEntry: CacheEntry<View> = { view: read(query), expiresAtMs: Number.POSITIVE_INFINITY };
    cache.set(key, newEntry);
    const evict = () => {
      if (cache.get(key) === newEntry) cache.delete(key);
    };
    newEntry.view.then(() => {
      const durationMs = nowMs() - startedAtMs;
      if (durationMs < CACHED_FROM_MS) evict();
      else newEntry.expiresAtMs = nowMs() + Math.min(durationMs * CACHE_TTL_FACTOR, CACHE_TTL_MAX_MS);
    }, evict);
    return newEntry.view;
  };
}

/** Start of the first hour: the requested hours end with the current one. */
const SINCE = `(date_bin('1 hour', now(), timestamptz 'epoch') - ($2::int - 1) * interval '1 hour')`;

export const dayOf = (timestamp: string) => `(${timestamp} AT TIME ZONE 'UTC')::date`;

// Reads only deliveries, because they contain their latest attempt, and a day of attempts has those of all webhooks.
// One more day is read on each side, as in the list of deliveries; the bounds are stable expressions, so the server
// prunes the other partitions before execution. Percentiles are computed from a histogram, whose size does not depend
// on the traffic: sorting a million durations would take longer than counting them. The row without an hour has the
// totals and always exists.
const SELECT = `
  WITH histogram AS MATERIALIZED (
    SELECT date_bin('1 hour', d.created_at, timestamptz 'epoch') AS hour, d.status,
      CASE WHEN d.http_status_code NOT IN (0, 502) OR d.error_code = 'unsuccessful_status' THEN d.duration_ms
      END AS duration_ms,
      count(*) AS deliveries, sum(d.attempt_count) AS attempts
    FROM deliveries d
    WHERE d.account_id = $3 AND d.subscription_id = $1 AND d.created_at >= ${SINCE}
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

const STATISTICS_COLUMNS = {
  hour_start: column.orNull(column.digits),
  delivered_count: column.integer,
  failed_count: column.integer,
  pending_count: column.integer,
  cancelled_count: column.integer,
  attempt_count: column.integer,
  p50_ms: column.orNull(column.integer),
  p95_ms: column.orNull(column.integer),
  since: column.digits,
  until: column.digits,
};

/** Reads a subscription's statistics by hour until now, and their totals. */
async function readStatistics(
  database: Queryable,
  { accountId, subscriptionId, hours }: StatisticsQuery,
): Promise<StatisticsView> {
  const rows = await queryRows(database, STATISTICS_COLUMNS, SELECT, [subscriptionId, hours, accountId]);
  const total = rows.find(({ hour_start }) => hour_start === null);
  if (!total) throw new Error('no totals in the statistics');
  const hourBuckets: StatisticsBucket[] = rows.flatMap((row) =>
    row.hour_start === null ? [] : [{ hour_start: row.hour_start, ...countsOf(row) }],
  );
  return statisticsView({ since: total.since, until: total.until, hours }, countsOf(total), hourBuckets);
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

const HOUR_MICROS = 3_600_000_000n;

const ZERO_COUNTS: StatisticsCounts = {
  delivered_count: 0,
  failed_count: 0,
  pending_count: 0,
  cancelled_count: 0,
  attempt_count: 0,
  p50_ms: null,
  p95_ms: null,
};

/** @param hourBuckets the hours that have deliveries, in any order */
function statisticsView(
  span: { since: string; until: string; hours: number },
  totals: StatisticsCounts,
  hourBuckets: readonly StatisticsBucket[],
): StatisticsView {
  const { since, until, hours } = span;
  const byHour = new Map(hourBuckets.map((bucket) => [bucket.hour_start, bucket]));
  const buckets = Array.from({ length: hours }, (_, index) => {
    const hour_start = String(BigInt(since) + BigInt(index) * HOUR_MICROS);
    return byHour.get(hour_start) ?? { hour_start, ...ZERO_COUNTS };
  });
  return { since, until, totals, buckets };
}
