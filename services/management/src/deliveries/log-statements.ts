// SQL by hand: the log, whose pages are found among millions by their place.
import { column, type Queryable, queryRows, requireColumns, runStatement } from '@runhook/database';
import { DELIVERY_COLUMNS, DELIVERY_WITH_DATA, type DeliveryRow, type LogKey } from './delivery.ts';
import type { HourlyCounts } from './hourly-counts.ts';
import {
  type Condition,
  type DeliveryFilters,
  deliveryConditions,
  type PageSeek,
  seekPage,
  whereOf,
} from './page-seek.ts';

/** Counting stops here: a busy webhook's log has more rows than a page's footer is worth. */
export const TOTAL_COUNT_MAX = 1_000_000;
/** And here where every row that is counted is read, unless somebody asks for what lies beyond. */
export const READ_COUNT_MAX = 50_000;

export interface DeliveryQuery extends LogKey {
  filters: DeliveryFilters;
  limit: number;
  offset: number;
}

export interface DeliveryPage {
  rows: DeliveryRow[];
  totalCount: number;
}

/**
 * A page of a subscription's log, newest first, with each event's data, and how many match in all. Where the hours of a
 * long log are known, neither what is counted nor what is skipped is read, and it is counted up to
 * {@link TOTAL_COUNT_MAX}; else a page among the first is counted up to {@link READ_COUNT_MAX}, and the hours are counted in
 * the background. A filter for the few that did not go well, or for one run, has an index of its own and needs no such help.
 */
export async function listDeliveries(
  database: Queryable,
  hourlyCounts: HourlyCounts,
  query: DeliveryQuery,
): Promise<DeliveryPage> {
  const { status, runId } = query.filters;
  const isSelective = runId !== null || (status !== null && status !== 'delivered');
  if (isSelective) return await readPage(database, query);
  const known = hourlyCounts.known(query) ?? (isFarBack(query) ? await hourlyCounts.counted(query) : null);
  if (known !== null) return await readSought(database, query, await seekPage(database, known, query));
  const startedAtMs = performance.now();
  const page = await readPage(database, query);
  const isLong = page.totalCount >= READ_COUNT_MAX;
  hourlyCounts.wasRead(query, { isLong, durationMs: performance.now() - startedAtMs });
  return page;
}

function isFarBack({ offset, limit }: Pick<DeliveryQuery, 'offset' | 'limit'>): boolean {
  return offset + limit >= READ_COUNT_MAX;
}

// The keys come first, from the index alone; only the rows of the page are read. The day leads the order: it lets a
// page end after the newest partition that fills it.
const PAGE_OF = (keys: string, parts: string) => `
  SELECT ${DELIVERY_COLUMNS}, e.data AS event_data, d.day AS ordered_day, d.created_at AS ordered_at
  FROM (${keys} ORDER BY day DESC, created_at DESC, id DESC LIMIT $1 OFFSET $2) k
  JOIN deliveries d ON d.day = k.day AND d.id = k.id AND ${parts}
  LEFT JOIN events e ON e.day = d.day AND e.id = d.event_id AND e.account_id = d.account_id`;

const KEYS_OF = (where: string) => `SELECT d.day, d.created_at, d.id FROM deliveries d WHERE ${where}`;

/** Counts and reads at once. */
async function readPage(database: Queryable, query: DeliveryQuery): Promise<DeliveryPage> {
  const { filters, limit, offset } = query;
  const conditions = deliveryConditions(query, filters);
  const where = whereOf(conditions, 2);
  const countMax = isFarBack({ offset, limit }) ? TOTAL_COUNT_MAX : READ_COUNT_MAX;
  const rows = await runStatement(
    database,
    `SELECT total.total_count, page.*
     FROM (SELECT count(*)::int AS total_count
       FROM (SELECT 1 FROM deliveries d WHERE ${where.all} LIMIT ${countMax}) matching) total
     LEFT JOIN (${PAGE_OF(KEYS_OF(where.all), where.ofParts)}) page ON true
     ORDER BY page.ordered_day DESC, page.ordered_at DESC, page.id DESC`,
    [limit, offset, ...valuesOf(conditions)],
  );
  const [first] = rows;
  return {
    // One row of nulls stands for an empty page.
    rows: rows.filter(({ id }) => id !== null).filter((row) => requireColumns(row, DELIVERY_WITH_DATA)),
    totalCount: first && requireColumns(first, { total_count: column.integer }) ? first.total_count : 0,
  };
}

/** Reads what is left to read once it is known in which hours the page is. */
async function readSought(database: Queryable, query: DeliveryQuery, seek: PageSeek): Promise<DeliveryPage> {
  const totalCount = Math.min(seek.totalCount, TOTAL_COUNT_MAX);
  if (seek.parts.length === 0) return { rows: [], totalCount };
  const shared = deliveryConditions(query, query.filters);
  const values = [query.limit, seek.offset, ...valuesOf(shared)];
  const where = whereOf(shared, 2);
  const parts = seek.parts.map((part) => {
    const ofPart = whereOf(part, values.length);
    values.push(...valuesOf(part));
    return { keys: KEYS_OF(`${where.all} AND ${ofPart.all}`), days: ofPart.ofParts };
  });
  const keys = parts.map((part) => part.keys).join(' UNION ALL ');
  const days = parts.map((part) => `(${part.days})`).join(' OR ');
  const rows = await queryRows(
    database,
    DELIVERY_WITH_DATA,
    `${PAGE_OF(`SELECT * FROM (${keys}) matching`, `${where.ofParts} AND (${days})`)} ORDER BY d.day DESC, d.created_at DESC, d.id DESC`,
    values,
  );
  return { rows, totalCount };
}

function valuesOf(conditions: readonly Condition[]): Condition['value'][] {
  return conditions.map(({ value }) => value);
}
