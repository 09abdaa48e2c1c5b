import type { Queryable } from '@runhook/database';
import { type DeliveryStatus, type LogKey, statusCondition, timestampOf } from './delivery.ts';
import {
  type CountedHours,
  countHours,
  HOUR_MICROS,
  type HourCount,
  type HourQuery,
} from './hourly-counts.ts';

/** Position of a page in the list of a subscription's deliveries. */
export interface PageLocator {
  totalCount: number;
  /** Conditions for each part of the list that the page is in, newest first; empty if the page is empty. */
  parts: Condition[][];
  /** Number of rows to skip in these parts. */
  offset: number;
}

interface PageQuery extends LogKey {
  filters: DeliveryFilters;
  limit: number;
  offset: number;
}

/**
 * Finds the page among the hours, in the order of the list: the newest day first, and in it the newest hour. Hours that
 * the cache does not cover are counted: those since `closedBefore`, and the ends of a window that divide an hour.
 */
export async function locatePage(
  database: Queryable,
  cachedHours: CountedHours,
  query: PageQuery,
): Promise<PageLocator> {
  const hours = mergeHours(await matchingHours(database, cachedHours, query));
  hours.sort((one, other) => (one.day === other.day ? other.hour - one.hour : one.day < other.day ? 1 : -1));
  let precedingCount = 0;
  let first: { hour: HourCount; precedingCount: number } | null = null;
  let last: HourCount | null = null;
  for (const hour of hours) {
    const cumulativeCount = precedingCount + hour.deliveries;
    if (first === null && cumulativeCount > query.offset) first = { hour, precedingCount };
    if (first !== null && precedingCount < query.offset + query.limit) last = hour;
    precedingCount = cumulativeCount;
  }
  if (first === null || last === null) return { totalCount: precedingCount, parts: [], offset: 0 };
  return {
    totalCount: precedingCount,
    offset: query.offset - first.precedingCount,
    parts: createParts(first.hour, last),
  };
}

/**
 * Returns conditions from the end of the newest hour to the start of the oldest hour, or of its day if another one. The
 * newest day is a separate part: with a fixed day the index finds the hour instead of starting at the end of the day.
 */
function createParts(newest: HourCount, oldest: HourCount): Condition[][] {
  const startOf = ({ hour }: HourCount, hours = 0) => String(BigInt(hour + hours) * HOUR_MICROS);
  const dayCondition = (operator: string, value: string): Condition => ({
    sql: (parameter) => `d.day ${operator} ${parameter}::date`,
    value,
  });
  const creationCondition = (operator: string, value: string): Condition => ({
    sql: (parameter) => `d.created_at ${operator} ${timestampOf(parameter)}`,
    value,
  });
  const newestDay = [dayCondition('=', newest.day), creationCondition('<', startOf(newest, 1))];
  if (newest.day === oldest.day) return [[...newestDay, creationCondition('>=', startOf(oldest))]];
  return [newestDay, [dayCondition('<', newest.day), dayCondition('>=', oldest.day)]];
}

async function matchingHours(
  database: Queryable,
  cachedHours: CountedHours,
  query: PageQuery,
): Promise<HourCount[]> {
  const { accountId, subscriptionId, filters } = query;
  const { eventType, status } = filters;
  const window = { since: parseMicros(filters.since), until: parseMicros(filters.until) };
  const inner = innerHours(window, cachedHours.closedBefore);
  const hourQuery = { accountId, subscriptionId, eventType };
  if (inner === null)
    return filterByDays(
      await countHours(database, { ...hourQuery, ...window, status, byEventType: false }),
      filters,
    );
  const innerCounts = cachedHours.counts.filter((one) => {
    const start = BigInt(one.hour) * HOUR_MICROS;
    const isInside = (inner.since === null || start >= inner.since) && start < inner.until;
    return isInside && (eventType === null || one.eventType === eventType);
  });
  const outer = outerRanges(window, inner);
  const [notDelivered, ...outerCounts] = await Promise.all([
    status === null
      ? []
      : countHours(database, { ...hourQuery, ...inner, status: 'not delivered', byEventType: true }),
    ...outer.map((range) => countHours(database, { ...hourQuery, ...range, status, byEventType: false })),
  ]);
  return filterByDays([...subtractHours(innerCounts, notDelivered), ...outerCounts.flat()], filters);
}

/** Merges the counts of an hour's event types and parts. */
function mergeHours(counts: readonly HourCount[]): HourCount[] {
  const byHour = new Map<string, HourCount>();
  for (const one of counts) {
    const key = `${one.day} ${one.hour}`;
    const deliveries = one.deliveries + (byHour.get(key)?.deliveries ?? 0);
    byHour.set(key, { ...one, deliveries });
  }
  return [...byHour.values()];
}

type Range = Pick<HourQuery, 'since' | 'until'>;

/** Returns the window without incomplete hours at its ends, up to `closedBefore`; null if nothing remains. */
function innerHours({ since, until }: Range, closedBefore: bigint): (Range & { until: bigint }) | null {
  const first = since === null ? null : since + ((HOUR_MICROS - (since % HOUR_MICROS)) % HOUR_MICROS);
  const completeUntil = until === null ? closedBefore : until - (until % HOUR_MICROS);
  const end = completeUntil < closedBefore ? completeUntil : closedBefore;
  return first !== null && first >= end ? null : { since: first, until: end };
}

/** Returns the ranges of the window outside of the inner hours. */
function outerRanges(window: Range, inner: Range & { until: bigint }): Range[] {
  const ranges: Range[] = [];
  if (window.since !== null && window.since !== inner.since)
    ranges.push({ since: window.since, until: inner.since });
  if (window.until === null || window.until !== inner.until)
    ranges.push({ since: inner.until, until: window.until });
  return ranges;
}

/** Filters by the same days as the list. */
function filterByDays(hours: HourCount[], filters: DeliveryFilters): HourCount[] {
  const { firstDay, lastDay } = daysOf(filters);
  return hours.filter(({ day }) => (firstDay === null || day >= firstDay) && day <= lastDay);
}

function subtractHours(hours: readonly HourCount[], subtracted: readonly HourCount[]): HourCount[] {
  const keyOf = ({ day, hour, eventType }: HourCount) => `${day} ${hour} ${eventType}`;
  const byHour = new Map<string, number>();
  for (const one of subtracted) byHour.set(keyOf(one), (byHour.get(keyOf(one)) ?? 0) + one.deliveries);
  return hours.map((one) => ({ ...one, deliveries: one.deliveries - (byHour.get(keyOf(one)) ?? 0) }));
}

function parseMicros(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}

/** Null filters match everything. */
export interface DeliveryFilters {
  status: DeliveryStatus | null;
  eventType: string | null;
  runId: number | null;
  /** Earliest creation, inclusive, in microseconds since the epoch, as digits. */
  since: string | null;
  /** Latest creation, exclusive, in the same format as `since`. */
  until: string | null;
}

export const DAY_MICROS = 86_400_000_000n;

/** A condition on `deliveries d`; `sql` gets the name of the parameter that holds `value`, if there is one. */
export interface Condition {
  sql: (parameter: string) => string;
  value?: string | number;
}

/**
 * Returns the conditions of a list. It reads the days of the window and one more on each side: the day of a delivery is
 * that of its event's id, which may differ from the day of creation. If the id is more than a day older, a window finds
 * the delivery only if it includes that day; failed and cancelled ones are found in any case, as a recovery does.
 */
export function deliveryConditions(
  { accountId, subscriptionId }: LogKey,
  filters: DeliveryFilters,
): Condition[] {
  const { status, eventType, runId, since, until } = filters;
  const isRecoverable = status === 'failed' || status === 'cancelled';
  const { firstDay, lastDay } = daysOf(filters);
  const conditions: [Condition['sql'], string | number | null][] = [
    [(parameter) => `d.account_id = ${parameter}`, accountId],
    [(parameter) => `d.subscription_id = ${parameter}`, subscriptionId],
    [(parameter) => `d.event_type = ${parameter}`, eventType],
    [(parameter) => `d.run_id = ${parameter}`, runId],
    [(parameter) => `d.created_at >= ${timestampOf(parameter)}`, since],
    [(parameter) => `d.created_at < ${timestampOf(parameter)}`, until],
    [(parameter) => `d.day >= ${parameter}::date`, isRecoverable ? null : firstDay],
    [(parameter) => `d.day <= ${parameter}::date`, lastDay],
  ];
  const activeConditions = conditions.flatMap(([sql, value]): Condition[] =>
    value === null ? [] : [{ sql, value }],
  );
  return status === null ? activeConditions : [...activeConditions, { sql: () => statusCondition(status) }];
}

/** Returns the days (`YYYY-MM-DD`) that a window reads; null for no bound. No event id is later than tomorrow. */
function daysOf({ since, until }: Pick<DeliveryFilters, 'since' | 'until'>): {
  firstDay: string | null;
  lastDay: string;
} {
  const now = BigInt(Date.now()) * 1_000n;
  const end = until === null || BigInt(until) > now ? now : BigInt(until);
  return {
    firstDay: since === null ? null : dayOf(BigInt(since) - DAY_MICROS),
    lastDay: dayOf(end + DAY_MICROS),
  };
}

/** Returns the UTC day as `YYYY-MM-DD`. Clamps times to 1970 to 9999, so that the year has four digits. */
export function dayOf(micros: bigint): string {
  const boundedMicros = micros < 0n ? 0n : micros > LAST_MICROS ? LAST_MICROS : micros;
  return new Date(Number(boundedMicros / 1000n)).toISOString().slice(0, 10);
}

/** A time in the last day of the year 9999. */
export const LAST_MICROS = 253_402_300_799_000_000n;

/** Returns the conditions in SQL. @param precedingParameters number of parameters that precede theirs */
export function whereOf(conditions: readonly Condition[], precedingParameters: number): string {
  let number = precedingParameters;
  const parts = conditions.map(({ sql, value }) => {
    if (value !== undefined) number += 1;
    return sql(`$${number}`);
  });
  return parts.join(' AND ') || 'true';
}

/** Returns the values for the parameters of {@link whereOf}. */
export function valuesOf(conditions: readonly Condition[]): (string | number)[] {
  return conditions.flatMap(({ value }) => value ?? []);
}
