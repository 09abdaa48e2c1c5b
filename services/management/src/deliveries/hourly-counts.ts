// SQL by hand: the log, of which millions are counted by the hour.
import { setTimeout as wait } from 'node:timers/promises';
import { column, type Queryable, queryRows, type RowOf } from '@runhook/database';
import { LRUCache } from 'lru-cache';
import { UnavailableError } from '../http/errors.ts';
import { type LogKey, statusIs, timestampOf } from './delivery.ts';
import { KeptCounts } from './kept-counts.ts';
import type { DeliveryFilters } from './page-seek.ts';

const HOUR_COUNT = {
  /** `YYYY-MM-DD`. */
  day: column.text,
  /** Hours since the epoch. */
  hour: column.integer,
  eventType: column.text,
  deliveries: column.integer,
};

/** How many deliveries of a subscription and an event type are in a partition and were created in an hour. */
export type HourCount = RowOf<typeof HOUR_COUNT>;

export const HOUR_MICROS = 3_600_000_000n;
const MINUTE_MICROS = 60_000_000n;

/** What a log must come to before its hours are worth keeping. */
const LIMITS = {
  /** A log that is read in less is read as it is. */
  slowMs: 40,
  /** Shorter logs are quick to read while the server is not busy. */
  deliveriesMin: 50_000,
  /** What is left of a request's time then is enough to read a page. */
  waitedForMs: 4_000,
};
const LOGS_MAX = 100;
/** A log that was long is so until retention takes of it, or its hours are known. */
const LONG_MS = 60_000;
/** An insert that is under way for longer than this could be missing from the count of its hour. */
const SETTLED_AFTER_MS = 15 * 60_000;

export interface CountedHours {
  counts: readonly HourCount[];
  /** Microseconds since the epoch: what was created before it is counted, of the hour that it is in as well. */
  closedBefore: bigint;
}

interface CountedLog extends CountedHours {
  isLong: boolean;
}

/** How many deliveries of long logs were created in each hour that is over. */
export interface HourlyCounts {
  /** Null when they are not known. */
  known(key: LogKey): CountedHours | null;
  /**
   * As {@link known}, counting first where they are not: to read what lies so far back would take as long. Null when they
   * cannot be counted. Throws a 503 when that takes longer than the caller has: it goes on, for when they come again, and a
   * page that was read beside it would make both of them late.
   */
  counted(key: LogKey): Promise<CountedHours | null>;
  /**
   * Tells of a page that was read without them. A long or slow log is counted in the background, for the next time.
   * @param page `eventType` where it was of that alone
   */
  wasRead(key: LogKey, page: { isLong: boolean; durationMs: number; eventType?: string | null }): void;
  /** Whether such a page was found to be of a long log just now: how many there are at least need not be counted again. */
  isLong(key: LogKey, eventType: string | null): boolean;
}

/**
 * A delivery is created at the moment of its insert, and leaves with its whole day: what an hour that is over holds
 * stays as it is until retention takes the day. So these counts are kept in memory. While somebody looks they are made
 * again in the background, once a minute or less often: so late is it noticed that a day is gone.
 */
export function createHourlyCounts(database: Queryable, limits: Partial<typeof LIMITS> = {}): HourlyCounts {
  const { slowMs, deliveriesMin, waitedForMs } = { ...LIMITS, ...limits };
  const logs = new KeptCounts<CountedLog>();
  const long = new LRUCache<string, true>({ max: LOGS_MAX, ttl: LONG_MS });
  const longKey = ({ subscriptionId }: LogKey, eventType: string | null) => `${subscriptionId} ${eventType}`;

  async function counts(key: LogKey, isKnownLong: boolean): Promise<CountedLog> {
    const closedBefore = settledBefore(MINUTE_MICROS);
    const counted = await countHours(database, {
      ...key,
      ...{ eventType: null, status: null, byEventType: true },
      ...{ since: null, until: closedBefore },
    });
    const deliveries = counted.reduce((sum, hour) => sum + hour.deliveries, 0);
    const isLong = isKnownLong || deliveries >= deliveriesMin;
    return { counts: isLong ? counted : [], closedBefore, isLong };
  }

  const count = (key: LogKey, isKnownLong: boolean) =>
    logs.count(key.subscriptionId, () => counts(key, isKnownLong));

  function known(key: LogKey): CountedHours | null {
    const log = logs.usable(key.subscriptionId);
    if (!log?.isLong) return null;
    if (!logs.isFresh(key.subscriptionId)) void count(key, true);
    return log;
  }

  return {
    known,
    async counted(key) {
      const { subscriptionId } = key;
      // Who asks for what lies so far back takes it to be long.
      const isGood = logs.usable(subscriptionId)?.isLong && logs.isFresh(subscriptionId);
      if (!isGood) {
        const isInTime = count(key, true).then(() => true);
        const isOver = await Promise.race([isInTime, wait(waitedForMs, false, { ref: false })]);
        if (!isOver && known(key) === null) throw new UnavailableError();
      }
      return known(key);
    },
    isLong: (key, eventType) => long.has(longKey(key, eventType)),
    wasRead(key, { isLong, durationMs, eventType = null }) {
      if (isLong) long.set(longKey(key, eventType), true, { noUpdateTTL: true });
      const isWorthwhile = isLong || durationMs > slowMs;
      if (isWorthwhile && !logs.isFresh(key.subscriptionId)) void count(key, isLong);
    },
  };
}

/** What is counted: deliveries of a subscription created at or after `since` and before `until`. */
export interface HourQuery extends LogKey {
  eventType: string | null;
  status: DeliveryFilters['status'];
  /** Microseconds since the epoch; null where it is open. */
  since: bigint | null;
  until: bigint | null;
}

/**
 * The hours that have any, in no order. `not delivered` is asked of the indexes of what is pending or failed.
 * @param query `byEventType` parts an hour by event type, which reads the rows; else `eventType` is "" in the answer
 */
export async function countHours(
  database: Queryable,
  query: Omit<HourQuery, 'status'> & { status: HourQuery['status'] | 'not delivered'; byEventType: boolean },
): Promise<HourCount[]> {
  const { accountId, subscriptionId, eventType, status, since, until } = query;
  const statuses =
    status === 'not delivered'
      ? [`d.status IN ('failed', 'cancelled')`, `d.status = 'pending'`]
      : [status === null ? 'true' : statusIs(status)];
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
  const counted = statuses.map(
    (
      one,
    ) => `SELECT d.day, date_bin('1 hour', d.created_at, timestamptz 'epoch') AS hour, ${type} AS event_type,
        count(*) AS deliveries
      FROM deliveries d WHERE ${where} AND ${one} GROUP BY 1, 2, 3`,
  );
  return await queryRows(
    database,
    HOUR_COUNT,
    `SELECT day::text, (extract(epoch FROM hour) / 3600)::int AS hour, event_type AS "eventType", deliveries::int
     FROM (${counted.join(' UNION ALL ')}) counted`,
    values,
  );
}

/** In microseconds since the epoch, a multiple of the width: what was created before it is there by now. */
export function settledBefore(widthMicros: bigint): bigint {
  const settled = BigInt(Date.now() - SETTLED_AFTER_MS) * 1000n;
  return settled - (settled % widthMicros);
}
