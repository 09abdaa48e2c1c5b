import type { DeliveryStatus } from '../domain/delivery-view.ts';
import { timestampOf } from './micros.ts';

/** Null filters let everything through. */
export interface DeliveryFilters {
  status: DeliveryStatus | null;
  eventType: string | null;
  runId: number | null;
  /** Microseconds since the epoch, as digits; deliveries created at or after it. */
  since: string | null;
  /** As `since`; deliveries created before it. */
  until: string | null;
}

const DAY_MICROS = 86_400_000_000n;

/** What a query asks of `deliveries d`; `sql` gets the name of the parameter that holds `value`. */
export interface Condition {
  sql: (parameter: string) => string;
  value: string | number;
  /** Whether it tells the server which partitions to leave alone. */
  isOfDays?: boolean;
}

/**
 * Only the days that are asked for are read, with one more on each side: an event's id, which decides the day, may be
 * up to a day ahead of its deliveries. One that was published with an id older than a day is listed under that day;
 * but what failed or was cancelled is listed whatever its day, so that as many are counted as a recovery would take.
 */
export function deliveryConditions(subscriptionId: string, filters: DeliveryFilters): Condition[] {
  const { status, eventType, runId, since, until } = filters;
  const isRecoverable = status === 'failed' || status === 'cancelled';
  const { firstDay, lastDay } = daysOf(filters);
  const conditions: [Condition['sql'], Condition['value'] | null, isOfDays?: true][] = [
    [(parameter) => `d.subscription_id = ${parameter}`, subscriptionId],
    [(parameter) => `d.status = ${parameter}`, status],
    [(parameter) => `d.event_type = ${parameter}`, eventType],
    [(parameter) => `d.run_id = ${parameter}`, runId],
    [(parameter) => `d.created_at >= ${timestampOf(parameter)}`, since],
    [(parameter) => `d.created_at < ${timestampOf(parameter)}`, until],
    [(parameter) => `d.day >= ${parameter}::date`, isRecoverable ? null : firstDay, true],
    [(parameter) => `d.day <= ${parameter}::date`, lastDay, true],
  ];
  return conditions.flatMap(([sql, value, isOfDays = false]) =>
    value === null ? [] : [{ sql, value, isOfDays }],
  );
}

/** The days (`YYYY-MM-DD`) that a window reads; null where it is open. */
export function daysOf({ since, until }: Pick<DeliveryFilters, 'since' | 'until'>): {
  firstDay: string | null;
  lastDay: string | null;
} {
  return {
    firstDay: since === null ? null : dayOf(BigInt(since) - DAY_MICROS),
    lastDay: until === null ? null : dayOf(BigInt(until) + DAY_MICROS),
  };
}

/** PostgreSQL's dates are not bound to four digits of a year, nor to years after the first. */
function dayOf(micros: bigint): string {
  const bounded = micros < 0n ? 0n : micros > LAST_MICROS ? LAST_MICROS : micros;
  return new Date(Number(bounded / 1000n)).toISOString().slice(0, 10);
}

/** In the last day of the year 9999. */
const LAST_MICROS = 253_402_300_799_000_000n;

/** The conditions in SQL, and those of days by themselves. @param taken how many parameters the statement has before theirs */
export function whereOf(conditions: readonly Condition[], taken: number): { all: string; ofDays: string } {
  const parts = conditions.map(({ sql, isOfDays }, index) => ({
    isOfDays,
    text: sql(`$${taken + index + 1}`),
  }));
  const joined = (some: typeof parts) => some.map(({ text }) => text).join(' AND ') || 'true';
  return { all: joined(parts), ofDays: joined(parts.filter(({ isOfDays }) => isOfDays)) };
}
