// SQL by hand: counts millions of deliveries of the log by the hour.
import { setTimeout as wait } from 'node:timers/promises';
import { column, type Queryable, queryRows, type RowOf } from '@runhook/database';
import { LRUCache } from 'lru-cache';
import { UnavailableError } from '../http/errors.ts';
import { CountCache } from './count-cache.ts';
import { type LogKey, statusCondition, timestampOf } from './delivery.ts';
import type { DeliveryFilters } from './page-locator.ts';

const HOUR_COUNT = {
  /** `YYYY-MM-DD`. */
  day: column.text,
  /** Hours since the epoch. */
  hour: column.integer,
  eventType: column.text,
  deliveries: column.integer,
};

/** Number of deliveries of a subscription and an event type that are in a partition and were created in an hour. */
export type HourCount = RowOf<typeof HOUR_COUNT>;

export const HOUR_MICROS = 3_600_000_000n;
const MINUTE_MICROS = 60_000_000n;

/** Conditions under which a log is cached. */
const LIMITS = {
  /** Duration of a read above which a log is counted, whatever the page shows of its length. */
  slowMs: 40,
  /** Minimum length of a log that is cached after a slow read: shorter ones are read quickly on an idle server. */
  deliveriesMin: 50_000,
  /** Maximum wait of a request for the counts, which leaves enough of its time to read a page. */
  waitMaxMs: 4_000,
};
const LOGS_MAX = 100;
/** Time for which a log is assumed to be long without counting it again, although retention may shorten it. */
const LONG_LOG_TTL_MS = 60_000;
/** An insert that takes longer than this could be missing from the count of its hour. */
const SETTLED_AFTER_MS = 15 * 60_000;

export interface CountedHours {
  counts: readonly HourCount[];
  /** Microseconds since the epoch: deliveries created before it are counted, including those of an incomplete hour. */
  closedBefore: bigint;
}

interface CountedLog extends CountedHours {
  isLong: boolean;
}

/** Caches the number of deliveries of long logs by the hour of their creation. */
export interface HourlyCounts {
  /** Returns null if the counts are not cached. */
  getCached(key: LogKey): CountedHours | null;
  /**
   * For a page far from the start of the log. Returns cached counts, or counts first, because reading that page would
   * take as long. Returns null if counting fails. Throws a 503 if counting takes longer than `waitMaxMs` and no older
   * counts are cached: it continues for the next request, and reading the page meanwhile would delay both.
   */
  getOrCount(key: LogKey): Promise<CountedHours | null>;
  /**
   * Reports a page that was read without the cache. A long or slow log is counted in the background for the next page.
   * @param page `eventType` is set if only that type was read
   */
  recordRead(key: LogKey, page: { isLong: boolean; durationMs: number; eventType?: string | null }): void;
  /**
   * Whether a page of this log was recently found to belong to a long log, so that its minimum length need not be
   * counted.
   */
  isLong(key: LogKey, eventType: string | null): boolean;
}

/**
 * Caches hourly counts of the deliveries created before `closedBefore`, which is at least 15 minutes ago. Deliveries
 * have the time of their insert and are deleted with their day, so these counts are constant until retention drops the
 * day. While the log is viewed, they are refreshed in the background at most once a minute, so a drop is noticed later.
 */
export function createHourlyCounts(database: Queryable, limits: Partial<typeof LIMITS> = {}): HourlyCounts {
  const { slowMs, deliveriesMin, waitMaxMs } = { ...LIMITS, ...limits };
  const logs = new CountCache<CountedLog>();
  const longLogs = new LRUCache<string, true>({ max: LOGS_MAX, ttl: LONG_LOG_TTL_MS });
  const longLogKey = ({ subscriptionId }: LogKey, eventType: string | null) =>
    `${subscriptionId} ${eventType}`;

  async function countLog(key: LogKey, isAssumedLong: boolean): Promise<CountedLog> {
    const closedBefore = settledBoundary(MINUTE_MICROS);
    const hours = await countHours(database, {
      ...key,
      ...{ eventType: null, status: null, byEventType: true },
      ...{ since: null, until: closedBefore },
    });
    const deliveries = hours.reduce((sum, hour) => sum + hour.deliveries, 0);
    const isLong = isAssumedLong || deliveries >= deliveriesMin;
    return { counts: isLong ? hours : [], closedBefore, isLong };
  }

  const count = (key: LogKey, isAssumedLong: boolean) =>
    logs.count(key.subscriptionId, () => countLog(key, isAssumedLong));

  function getCached(key: LogKey): CountedHours | null {
    const log = logs.get(key.subscriptionId);
    if (!log?.isLong) return null;
    if (!logs.isFresh(key.subscriptionId)) void count(key, true);
    return log;
  }

  return {
    getCached,
    async getOrCount(key) {
      const { subscriptionId } = key;
      // A request for a page that far assumes a long log, so the counts are cached whatever their sum.
      const isCacheUsable = logs.get(subscriptionId)?.isLong && logs.isFresh(subscriptionId);
      if (!isCacheUsable) {
        const completion = count(key, true).then(() => true);
        const isComplete = await Promise.race([completion, wait(waitMaxMs, false, { ref: false })]);
        if (!isComplete && getCached(key) === null) throw new UnavailableError();
      }
      return getCached(key);
    },
    isLong: (key, eventType) => longLogs.has(longLogKey(key, eventType)),
    recordRead(key, { isLong, durationMs, eventType = null }) {
      if (isLong) longLogs.set(longLogKey(key, eventType), true, { noUpdateTTL: true });
      const isWorthwhile = isLong || durationMs > slowMs;
      if (isWorthwhile && !logs.isFresh(key.subscriptionId)) void count(key, isLong);
    },
  };
}

/** Selects deliveries of a subscription created at or after `since` and before `until`. */
export interface HourQuery extends LogKey {
  eventType: string | null;
  status: DeliveryFilters['status'];
  /** Microseconds since the epoch; null for no bound. */
  since: bigint | null;
  until: bigint | null;
}

/**
 * Returns the hours that have deliveries, in no order. `not delivered` uses the indexes of all other statuses.
 * @param query `byEventType` splits an hour by event type, which reads the rows; otherwise `eventType` is ""
 */
export async function countHours(
  database: Queryable,
  query: Omit<HourQuery, 'status'> & { status: HourQuery['status'] | 'not delivered'; byEventType: boolean },
): Promise<HourCount[]> {
  const { accountId, subscriptionId, eventType, status, since, until } = query;
  const statuses =
    status === 'not delivered'
      ? [`d.status IN ('failed', 'cancelled')`, `d.status = 'pending'`]
      : [status === null ? 'true' : statusCondition(status)];
  const values: string[] = [];
  const condition = (value: string | bigint | number | null, sql: (parameter: string) => string) =>
    value === null ? [] : [sql(`$${values.push(String(value))}`)];
  const where = [
    condition(accountId, (parameter) => `d.account_id = ${parameter}`),
    condition(subscriptionId, (parameter) => `d.subscription_id = ${parameter}`),
    condition(eventType, (parameter) => `d.event_type = ${parameter}`),
    condition(since, (parameter) => `d.created_at >= ${timestampOf(parameter)}`),
    condition(until, (parameter) => `d.created_at < ${timestampOf(parameter)}`),
  ]
    .flat()
    .join(' AND ');
  const type = query.byEventType ? 'd.event_type' : `''::text`;
  const countSql = statuses.map(
    (
      statusSql,
    ) => `SELECT d.day, date_bin('1 hour', d.created_at, timestamptz 'epoch') AS hour, ${type} AS event_type,
        count(*) AS deliveries
      FROM deliveries d WHERE ${where} AND ${statusSql} GROUP BY 1, 2, 3`,
  );
  return await queryRows(
    database,
    HOUR_COUNT,
    `SELECT day::text, (extract(epoch FROM hour) / 3600)::int AS hour, event_type AS "eventType", deliveries::int
     FROM (${countSql.join(' UNION ALL ')}) counted`,
    values,
  );
}

/** Returns the latest multiple of the width, in microseconds since the epoch, before which all inserts have ended. */
export function settledBoundary(widthMicros: bigint): bigint {
  const settled = BigInt(Date.now() - SETTLED_AFTER_MS) * 1000n;
  return settled - (settled % widthMicros);
}
