// SQL by hand: finds the page at an offset among millions of rows by counts of deliveries per hour (page-locator.ts).
import { column, type Queryable, queryRows, requireColumns, runStatement } from '@runhook/database';
import { type DeliveryRow, findRowsByKeys, type LogKey, ROW_KEY } from './delivery.ts';
import type { HourlyCounts } from './hourly-counts.ts';
import {
  type DeliveryFilters,
  deliveryConditions,
  locatePage,
  type PageLocator,
  valuesOf,
  whereOf,
} from './page-locator.ts';

/** Maximum total count of a list; counting more rows of a busy webhook's log would cost more than it is worth. */
export const TOTAL_COUNT_MAX = 1_000_000;
/** Maximum total count if every counted row must be read; {@link TOTAL_COUNT_MAX} for a page that reaches it. */
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
 * Reads a page of a subscription's log, newest first, with each event's data and the number of matches. With cached
 * hours of a long log, the skipped rows are not read, and matches are counted up to {@link TOTAL_COUNT_MAX}. Otherwise
 * matches of the first pages are counted up to {@link READ_COUNT_MAX}, at intervals, and the hours are counted in the
 * background. Filters for a run or for the few deliveries that are not delivered have separate indexes and need no
 * cache.
 * @param existenceCheck resolves if the webhook exists; awaited before counts are cached
 */
export async function listDeliveries(
  database: Queryable,
  hourlyCounts: HourlyCounts,
  query: DeliveryQuery,
  existenceCheck: Promise<unknown> = Promise.resolve(),
): Promise<DeliveryPage> {
  const { status, runId, eventType, since, until } = query.filters;
  const isSelective = runId !== null || (status !== null && status !== 'delivered');
  if (isSelective) return await readPage(database, query);
  const countOrWait = () => existenceCheck.then(() => hourlyCounts.getOrCount(query));
  const cachedHours = hourlyCounts.getCached(query) ?? (isDeepPage(query) ? await countOrWait() : null);
  if (cachedHours !== null)
    return await readLocatedPage(database, query, await locatePage(database, cachedHours, query));
  const startedAtMs = performance.now();
  // Without status and window, only retention removes matches. Others change as windows move and deliveries progress.
  const isAppendOnly = status === null && since === null && until === null && !isDeepPage(query);
  const isLong = isAppendOnly && hourlyCounts.isLong(query, eventType);
  const page = isLong
    ? await readLocatedPage(database, query, {
        totalCount: READ_COUNT_MAX,
        parts: [[]],
        offset: query.offset,
      })
    : await readPage(database, query);
  const durationMs = performance.now() - startedAtMs;
  await existenceCheck;
  hourlyCounts.recordRead(query, { isLong: page.totalCount >= READ_COUNT_MAX, durationMs, eventType });
  return page;
}

function isDeepPage({ offset, limit }: Pick<DeliveryQuery, 'offset' | 'limit'>): boolean {
  return offset + limit >= READ_COUNT_MAX;
}

// The keys are read first, from the index alone, then the rows of the page by their keys. The order begins with the
// day, so that a page ends with the newest partition that fills it.
const KEYS_NEWEST_FIRST = 'ORDER BY day DESC, created_at DESC, id DESC';
const selectKeys = (where: string) => `SELECT d.day, d.created_at, d.id FROM deliveries d WHERE ${where}`;

/** Counts the matches and finds the keys of the page in one statement. */
async function readPage(database: Queryable, query: DeliveryQuery): Promise<DeliveryPage> {
  const { accountId, limit, offset } = query;
  const conditions = deliveryConditions(query, query.filters);
  const where = whereOf(conditions, 2);
  const countMax = isDeepPage(query) ? TOTAL_COUNT_MAX : READ_COUNT_MAX;
  const found = await runStatement(
    database,
    `SELECT total.total_count, k.day::text AS day, k.id
     FROM (SELECT count(*)::int AS total_count
       FROM (SELECT 1 FROM deliveries d WHERE ${where} LIMIT ${countMax}) matching) total
     LEFT JOIN (${selectKeys(where)} ${KEYS_NEWEST_FIRST} LIMIT $1 OFFSET $2) k ON true
     ORDER BY k.day DESC, k.created_at DESC, k.id DESC`,
    [limit, offset, ...valuesOf(conditions)],
  );
  const [first] = found;
  // An empty page is one row of nulls.
  const keys = found.filter(({ id }) => id !== null).filter((row) => requireColumns(row, ROW_KEY));
  return {
    rows: await findRowsByKeys(database, accountId, keys),
    totalCount: first && requireColumns(first, { total_count: column.integer }) ? first.total_count : 0,
  };
}

/** Reads the rows of a page whose total count and hours are known. */
async function readLocatedPage(
  database: Queryable,
  query: DeliveryQuery,
  locator: PageLocator,
): Promise<DeliveryPage> {
  const totalCount = Math.min(locator.totalCount, TOTAL_COUNT_MAX);
  if (locator.parts.length === 0) return { rows: [], totalCount };
  const shared = deliveryConditions(query, query.filters);
  const values = [query.limit, locator.offset, ...valuesOf(shared)];
  const where = whereOf(shared, 2);
  // Each part has its own limit, so that no plan sorts an entire day for a page that spans midnight.
  const parts = locator.parts.map((part) => {
    const partCondition = whereOf(part, values.length);
    values.push(...valuesOf(part));
    return `(${selectKeys(`${where} AND ${partCondition}`)} ${KEYS_NEWEST_FIRST} LIMIT $1::bigint + $2::bigint)`;
  });
  const keys = await queryRows(
    database,
    ROW_KEY,
    `SELECT k.day::text AS day, k.id
     FROM (SELECT * FROM (${parts.join(' UNION ALL ')}) matching ${KEYS_NEWEST_FIRST} LIMIT $1 OFFSET $2) k
     ORDER BY k.day DESC, k.created_at DESC, k.id DESC`,
    values,
  );
  return { rows: await findRowsByKeys(database, query.accountId, keys), totalCount };
}
