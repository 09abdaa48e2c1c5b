// SQL by hand: counts the log of all webhooks of an account by index into buckets of one width.
import { column, type Queryable, queryRows } from '@runhook/database';
import { type AccountCounts, type CountedSlots, SLOT_MICROS } from './account-counts.ts';
import {
  type AccountLogFilters,
  type AccountLogQuery,
  readSpan,
  rowConditions,
  runOrEventConditions,
  type Source,
  segmentConditions,
  sourceConditions,
  sourcesOf,
  Values,
} from './account-log-conditions.ts';
import { DELIVERY_STATUSES, microsOf } from './delivery.ts';
import {
  addDeliveries,
  bucketSeconds,
  type Counts,
  type HistogramView,
  histogramView,
  type Window,
} from './histogram-buckets.ts';
import { type LogSegment, type Span, scanSegments, splitIntoSegments } from './log-segments.ts';
import { DAY_MICROS } from './page-locator.ts';

/** Maximum number of deliveries to read, by one statement and in total: from the table, or from an index only. */
const LIMITS = {
  rows: { perReadMax: 20_000, totalMax: 60_000 },
  index: { perReadMax: 150_000, totalMax: 600_000 },
};

/**
 * Counts the deliveries of an account that were created in a window. Cached half-hours are not read again. Deliveries
 * that are not delivered are counted by a separate index and subtracted from the total. Counting starts with the newest
 * delivery and stops after a bounded number of rows; the result contains the time where it stopped.
 */
export async function readHistogram(
  database: Queryable,
  accountCounts: AccountCounts,
  query: AccountLogQuery & { window: Window },
  limits = LIMITS,
): Promise<HistogramView> {
  const { filters, window, webhooks } = query;
  const width = BigInt(bucketSeconds(window.until - window.since)) * 1_000_000n;
  const counts: Counts = new Map();
  const context: CountContext = { database, query, width, counts, limits };
  let countedSince: bigint | null = null;
  if (webhooks.size > 0) {
    if (filters.runId !== null || filters.eventId !== null) await countRunOrEvent(context);
    else if (isCountable(filters)) countedSince = await countByIndex(context, accountCounts);
    else countedSince = await countRows(context, sourcesOf(filters), [...webhooks.keys()], window);
  }
  return histogramView(window, width, counts, countedSince);
}

interface CountContext {
  database: Queryable;
  query: AccountLogQuery & { window: Window };
  width: bigint;
  counts: Counts;
  limits: typeof LIMITS;
}

/** Whether indexes contain all columns of the filters. */
function isCountable(filters: AccountLogFilters): boolean {
  const conditions = rowConditions(new Values(), filters);
  return conditions.length === 0 || (conditions.length === 1 && filters.status === 'delivered');
}

async function countByIndex(context: CountContext, accountCounts: AccountCounts): Promise<bigint | null> {
  const { query, width } = context;
  const { filters, webhooks, window } = query;
  const ids = [...webhooks.keys()];
  const sources = sourcesOf(filters);
  const isPartialOnly = sources.every((source) => source !== 'all');
  const partialSources: Source[] = isPartialOnly ? sources : ['recoverable', 'pending'];
  const unfilteredContext = { ...context, query: { ...query, filters: { ...filters, status: null } } };
  const ends = [await countRows(isPartialOnly ? context : unfilteredContext, partialSources, ids, window)];
  if (!isPartialOnly) {
    const startedAtMs = performance.now();
    const hasSlots = width % SLOT_MICROS === 0n;
    const cachedSlots = hasSlots ? accountCounts.getCached(query.accountId) : null;
    const uncachedIds = ids.filter((id) => !cachedSlots?.byWebhook.has(id));
    ends.push(await countAll(context, uncachedIds, window));
    if (cachedSlots !== null) ends.push(await addCachedSlots(context, cachedSlots));
    if (hasSlots) accountCounts.recordRead(query.accountId, performance.now() - startedAtMs);
    for (const count of context.counts.values()) {
      count.delivered = Math.max(0, count.delivered - count.failed - count.pending - count.cancelled);
      if (filters.status === 'delivered') Object.assign(count, { failed: 0, pending: 0, cancelled: 0 });
    }
  }
  return latest(ends);
}

function latest(ends: (bigint | null)[]): bigint | null {
  return ends.reduce((last, end) => (end !== null && (last === null || end > last) ? end : last), null);
}

/** Adds the cached half-hours that are completely in the window, and counts the rest of the window on either side. */
async function addCachedSlots(context: CountContext, cachedSlots: CountedSlots): Promise<bigint | null> {
  const { window, webhooks } = context.query;
  const ids = [...webhooks.keys()].filter((id) => cachedSlots.byWebhook.has(id));
  const since = window.since + ((SLOT_MICROS - (window.since % SLOT_MICROS)) % SLOT_MICROS);
  const isAllClosed = window.until < cachedSlots.closedBefore;
  const until = isAllClosed ? window.until - (window.until % SLOT_MICROS) : cachedSlots.closedBefore;
  if (until <= since) return await countAll(context, ids, window);
  const [first, last] = [Number(since / SLOT_MICROS), Number(until / SLOT_MICROS)];
  for (const id of ids) {
    const pairs = cachedSlots.byWebhook.get(id) ?? [];
    for (let index = 0; index < pairs.length; index += 2) {
      const [slot = 0, deliveries = 0] = [pairs[index], pairs[index + 1]];
      if (slot >= first && slot < last)
        addDeliveries(context, BigInt(slot) * SLOT_MICROS, 'delivered', deliveries);
    }
  }
  const endAfter = await countAll(context, ids, { since: until, until: window.until });
  const endBefore = endAfter ?? (await countAll(context, ids, { since: window.since, until: since }));
  return latest([endAfter, endBefore]);
}

/** Counts all deliveries as delivered; the caller subtracts those of another status. */
async function countAll(
  context: CountContext,
  ids: readonly string[],
  window: Window,
): Promise<bigint | null> {
  if (ids.length === 0 || window.until <= window.since) return null;
  return await countSegments(context, window, context.limits.index, (values, segment, max) => {
    const where = segmentConditions(values, context.query.accountId, segment, window).join(' AND ');
    return `SELECT d.created_at, 'delivered'::text AS status
      FROM unnest(${values.$(ids)}::text[]) AS webhook (id)
      CROSS JOIN LATERAL (SELECT d.created_at FROM deliveries d WHERE d.subscription_id = webhook.id AND ${where}) d
      LIMIT ${values.$(max + 1)}`;
  });
}

/** Counts rows of the sources by their status. */
async function countRows(
  context: CountContext,
  sources: readonly Source[],
  ids: readonly string[],
  window: Window,
): Promise<bigint | null> {
  const { accountId, filters } = context.query;
  return await countSegments(context, window, context.limits.rows, (values, segment, max) => {
    const parts = sources.map((source) => {
      const where = [
        ...segmentConditions(values, accountId, segment, window),
        ...sourceConditions(values, source, filters),
      ].join(' AND ');
      const list = `${values.$(ids)}::text[]`;
      return source === 'pending'
        ? `SELECT d.* FROM deliveries d WHERE d.subscription_id = ANY (${list}) AND ${where}`
        : `SELECT d.* FROM unnest(${list}) AS webhook (id)
           CROSS JOIN LATERAL (SELECT * FROM deliveries d WHERE d.subscription_id = webhook.id AND ${where}
             ORDER BY d.day DESC, d.created_at DESC LIMIT ${values.$(max + 1)}) d`;
    });
    const matches = ['true', ...rowConditions(values, filters)].join(' AND ');
    return `SELECT d.created_at, CASE WHEN ${matches} THEN d.status END AS status
      FROM (${parts.join(' UNION ALL ')}) d LIMIT ${values.$(max + 1)}`;
  });
}

const COUNT_ROW = {
  start: column.digits,
  status: column.orNull(column.oneOf(DELIVERY_STATUSES)),
  deliveries: column.integer,
};

/** Counts one segment after another. Returns the time before which deliveries are not counted, or null. */
async function countSegments(
  { database, query, width, counts }: CountContext,
  window: Window,
  limits: { perReadMax: number; totalMax: number },
  scan: (values: Values, segment: LogSegment, max: number) => string,
): Promise<bigint | null> {
  const span: Span = await readSpan(database, { since: String(window.since), until: String(window.until) });
  const end = await scanSegments(splitIntoSegments(span, null), {
    limits,
    async read(segment, max) {
      const values = new Values();
      const scannedSql = scan(values, segment, max);
      const rows = await queryRows(database, COUNT_ROW, countsSql(scannedSql, width, values), values.all);
      return { count: rows.reduce((sum, { deliveries }) => sum + deliveries, 0), found: rows };
    },
    accept(rows) {
      for (const { start, status, deliveries } of rows)
        if (status !== null) addDeliveries({ width, counts }, BigInt(start), status, deliveries);
      return false;
    },
  });
  if (end === null) return null;
  const dayStart = BigInt(Date.parse(`${end.day}T00:00Z`)) * 1000n;
  const bound =
    end.id === '' && end.createdAt < dayStart + DAY_MICROS ? end.createdAt : dayStart + DAY_MICROS;
  return bound > query.window.until ? query.window.until : bound;
}

/** Returns SQL that counts by bucket, then formats its start: formatting it for each delivery would take longer. */
function countsSql(scannedSql: string, width: bigint, values: Values): string {
  const seconds = values.$(Number(width / 1_000_000n));
  return `SELECT ${microsOf('start')} AS start, status, deliveries
    FROM (
      SELECT date_bin(${seconds} * interval '1 second', created_at, timestamptz 'epoch') AS start, status,
        count(*)::int AS deliveries
      FROM (${scannedSql}) scanned GROUP BY 1, 2
    ) counted`;
}

async function countRunOrEvent({ database, query, width, counts }: CountContext): Promise<void> {
  const { window, filters } = query;
  const values = new Values();
  const windowFilters = { ...filters, since: String(window.since), until: String(window.until) };
  const where = runOrEventConditions(values, { ...query, filters: windowFilters }).join(' AND ');
  const scannedSql = `SELECT d.created_at, d.status FROM deliveries d WHERE ${where}`;
  for (const row of await queryRows(database, COUNT_ROW, countsSql(scannedSql, width, values), values.all))
    if (row.status !== null) addDeliveries({ width, counts }, BigInt(row.start), row.status, row.deliveries);
}
