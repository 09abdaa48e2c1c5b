import { type Database, runStatement } from '@runhook/database';
import type { DeliveryRow, DeliveryStatus } from '../domain/delivery-view.ts';
import { DELIVERY_COLUMNS } from './delivery-columns.ts';
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

/** Counting stops here: a busy webhook's log has more rows than a page's footer is worth. */
export const TOTAL_COUNT_MAX = 1_000_000;

const DAY_MICROS = 86_400_000_000n;

const dayOf = (parameter: string) => `(${timestampOf(parameter)} AT TIME ZONE 'UTC')::date`;

interface Condition {
  sql: (parameter: string) => string;
  value: string | number | null;
}

/**
 * Only the days that are asked for are read, with one more on each side: an event's id, which decides the day, may be
 * up to a day ahead of its deliveries. One that was published with an id older than a day is listed under that day.
 */
function conditions(subscriptionId: string, filters: DeliveryFilters): Condition[] {
  const { status, eventType, runId, since, until } = filters;
  const dayBeforeSince = since === null ? null : String(BigInt(since) - DAY_MICROS);
  const dayAfterUntil = until === null ? null : String(BigInt(until) + DAY_MICROS);
  return [
    { sql: (parameter) => `d.subscription_id = ${parameter}`, value: subscriptionId },
    { sql: (parameter) => `d.status = ${parameter}`, value: status },
    { sql: (parameter) => `d.event_type = ${parameter}`, value: eventType },
    { sql: (parameter) => `d.run_id = ${parameter}`, value: runId },
    { sql: (parameter) => `d.created_at >= ${timestampOf(parameter)}`, value: since },
    { sql: (parameter) => `d.created_at < ${timestampOf(parameter)}`, value: until },
    { sql: (parameter) => `d.day >= ${dayOf(parameter)}`, value: dayBeforeSince },
    { sql: (parameter) => `d.day <= ${dayOf(parameter)}`, value: dayAfterUntil },
  ];
}

/**
 * A page of a subscription's log, newest first, with each event's data, and how many match in all (counted up to
 * {@link TOTAL_COUNT_MAX}). The day leads the order: it lets a page end after the newest partition that fills it.
 */
export async function listDeliveries(
  pool: Database['pool'],
  query: { subscriptionId: string; filters: DeliveryFilters; limit: number; offset: number },
): Promise<{ rows: DeliveryRow[]; totalCount: number }> {
  const { subscriptionId, filters, limit, offset } = query;
  const given = conditions(subscriptionId, filters).filter(({ value }) => value !== null);
  const where = given.map(({ sql }, index) => sql(`$${index + 3}`)).join(' AND ');
  type PageRow = { total_count: number } & (DeliveryRow | { id: null });
  const rows = await runStatement<PageRow>(
    pool,
    `SELECT total.total_count, page.*
     FROM (SELECT count(*)::int AS total_count
       FROM (SELECT FROM deliveries d WHERE ${where} LIMIT ${TOTAL_COUNT_MAX}) matching) total
     LEFT JOIN (
       SELECT ${DELIVERY_COLUMNS}, e.data AS event_data, d.day, d.created_at AS created
       FROM (SELECT * FROM deliveries d WHERE ${where}
         ORDER BY d.day DESC, d.created_at DESC, d.id DESC LIMIT $1 OFFSET $2) d
       LEFT JOIN events e ON e.day = d.day AND e.id = d.event_id
     ) page ON true
     ORDER BY page.day DESC, page.created DESC, page.id DESC`,
    [limit, offset, ...given.map(({ value }) => value)],
  );
  return {
    rows: rows.filter((row): row is PageRow & DeliveryRow => row.id !== null),
    totalCount: rows[0]?.total_count ?? 0,
  };
}
