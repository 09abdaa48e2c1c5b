// SQL by hand: counts the log of all webhooks of an account by index into buckets of one width.
import { column, type Queryable, queryRows } from '@runhook/database';
import { type AccountCounts, type CountedSlots, SLOT_MICROS } from './account-counts.ts';
import {
  type AccountLogFilters,
  type AccountLogQuery,
  namedConditions,
  placeConditions,
  rowConditions,
  type Source,
  sourceConditions,
  sourcesOf,
  spanOf,
  Values,
} from './account-log-places.ts';
import { DELIVERY_STATUSES, microsOf } from './delivery.ts';
import {
  add,
  bucketSeconds,
  type Counts,
  type HistogramView,
  histogramView,
  type Window,
} from './histogram-buckets.ts';
import { DAY_MICROS } from './page-seek.ts';
import { type Span, type Stretch, stretchesOf, walk } from './stretches.ts';

/** Limits of reading, where rows are read and where an index suffices. */
const LIMITS = {
  rows: { atOnce: 20_000, inAll: 60_000 },
  index: { atOnce: 150_000, inAll: 600_000 },
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
  const counting: Counting = { database, query, width, counts, limits };
  let countedSince: bigint | null = null;
  if (webhooks.size > 0) {
    if (filters.runId !== null || filters.eventId !== null) await countNamed(counting);
    else if (isCountable(filters)) countedSince = await countByIndex(counting, accountCounts);
    else countedSince = await countRows(counting, sourcesOf(filters), [...webhooks.keys()], window);
  }
  return histogramView(window, width, counts, countedSince);
}

interface Counting {
  database: Queryable;
  query: AccountLogQuery & { window: Window };
  width: bigint;
  counts: Counts;
  limits: typeof LIMITS;
}

/** Whether indexes contain all columns of the filters. */
function isCountable(filters: AccountLogFilters): boolean {
  const asked = rowConditions(new Values(), filters);
  return asked.length === 0 || (asked.length === 1 && filters.status === 'delivered');
}

async function countByIndex(counting: Counting, accountCounts: AccountCounts): Promise<bigint | null> {
  const { query, width } = counting;
  const { filters, webhooks, window } = query;
  const ids = [...webhooks.keys()];
  const sources = sourcesOf(filters);
  const isOfFew = sources.every((source) => source !== 'all');
  const few: Source[] = isOfFew ? sources : ['recoverable', 'pending'];
  const ofAll = { ...counting, query: { ...query, filters: { ...filters, status: null } } };
  const ends = [await countRows(isOfFew ? counting : ofAll, few, ids, window)];
  if (!isOfFew) {
    const startedAtMs = performance.now();
    const hasSlots = width % SLOT_MICROS === 0n;
    const known = hasSlots ? accountCounts.known(query.accountId) : null;
    const unknown = ids.filter((id) => !known?.byWebhook.has(id));
    ends.push(await countAll(counting, unknown, window));
    if (known !== null) ends.push(await addKnown(counting, known));
    if (hasSlots) accountCounts.wasRead(query.accountId, performance.now() - startedAtMs);
    for (const count of counting.counts.values()) {
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
async function addKnown(counting: Counting, known: CountedSlots): Promise<bigint | null> {
  const { window, webhooks } = counting.query;
  const ids = [...webhooks.keys()].filter((id) => known.byWebhook.has(id));
  const since = window.since + ((SLOT_MICROS - (window.since % SLOT_MICROS)) % SLOT_MICROS);
  const isAllClosed = window.until < known.closedBefore;
  const until = isAllClosed ? window.until - (window.until % SLOT_MICROS) : known.closedBefore;
  if (until <= since) return await countAll(counting, ids, window);
  const [first, last] = [Number(since / SLOT_MICROS), Number(until / SLOT_MICROS)];
  for (const id of ids) {
    const pairs = known.byWebhook.get(id) ?? [];
    for (let at = 0; at < pairs.length; at += 2) {
      const [slot = 0, deliveries = 0] = [pairs[at], pairs[at + 1]];
      if (slot >= first && slot < last) add(counting, BigInt(slot) * SLOT_MICROS, 'delivered', deliveries);
    }
  }
  const after = await countAll(counting, ids, { since: until, until: window.until });
  const before = after ?? (await countAll(counting, ids, { since: window.since, until: since }));
  return latest([after, before]);
}

/** Counts all deliveries as delivered; the caller subtracts the others. */
async function countAll(counting: Counting, ids: readonly string[], window: Window): Promise<bigint | null> {
  if (ids.length === 0 || window.until <= window.since) return null;
  return await countStretches(counting, window, counting.limits.index, (values, stretch, max) => {
    const where = placeConditions(values, counting.query.accountId, stretch, window).join(' AND ');
    return `SELECT d.created_at, 'delivered'::text AS status
      FROM unnest(${values.$(ids)}::text[]) AS webhook (id)
      CROSS JOIN LATERAL (SELECT d.created_at FROM deliveries d WHERE d.subscription_id = webhook.id AND ${where}) d
      LIMIT ${values.$(max + 1)}`;
  });
}

/** Counts rows of the sources by their status. */
async function countRows(
  counting: Counting,
  sources: readonly Source[],
  ids: readonly string[],
  window: Window,
): Promise<bigint | null> {
  const { accountId, filters } = counting.query;
  return await countStretches(counting, window, counting.limits.rows, (values, stretch, max) => {
    const parts = sources.map((source) => {
      const where = [
        ...placeConditions(values, accountId, stretch, window),
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

const COUNTED = {
  start: column.digits,
  status: column.orNull(column.oneOf(DELIVERY_STATUSES)),
  deliveries: column.integer,
};

/** Counts one segment after another. */
async function countStretches(
  { database, query, width, counts }: Counting,
  window: Window,
  limits: { atOnce: number; inAll: number },
  scan: (values: Values, stretch: Stretch, max: number) => string,
): Promise<bigint | null> {
  const span: Span = await spanOf(database, { since: String(window.since), until: String(window.until) });
  const end = await walk(stretchesOf(span, null), {
    limits,
    async read(stretch, max) {
      const values = new Values();
      const scanned = scan(values, stretch, max);
      const rows = await queryRows(database, COUNTED, countsOf(scanned, width, values), values.all);
      return { count: rows.reduce((sum, { deliveries }) => sum + deliveries, 0), found: rows };
    },
    take(rows) {
      for (const { start, status, deliveries } of rows)
        if (status !== null) add({ width, counts }, BigInt(start), status, deliveries);
      return false;
    },
  });
  if (end === null) return null;
  const dayStart = BigInt(Date.parse(`${end.day}T00:00Z`)) * 1000n;
  const bound =
    end.id === '' && end.createdAt < dayStart + DAY_MICROS ? end.createdAt : dayStart + DAY_MICROS;
  return bound > query.window.until ? query.window.until : bound;
}

/** Formats the start of a bucket only once, since formatting it for each delivery would take longer than counting. */
function countsOf(scanned: string, width: bigint, values: Values): string {
  const seconds = values.$(Number(width / 1_000_000n));
  return `SELECT ${microsOf('start')} AS start, status, deliveries
    FROM (
      SELECT date_bin(${seconds} * interval '1 second', created_at, timestamptz 'epoch') AS start, status,
        count(*)::int AS deliveries
      FROM (${scanned}) scanned GROUP BY 1, 2
    ) counted`;
}

async function countNamed({ database, query, width, counts }: Counting): Promise<void> {
  const { window, filters } = query;
  const values = new Values();
  const within = { ...filters, since: String(window.since), until: String(window.until) };
  const where = namedConditions(values, { ...query, filters: within }).join(' AND ');
  const scanned = `SELECT d.created_at, d.status FROM deliveries d WHERE ${where}`;
  for (const row of await queryRows(database, COUNTED, countsOf(scanned, width, values), values.all))
    if (row.status !== null) add({ width, counts }, BigInt(row.start), row.status, row.deliveries);
}
