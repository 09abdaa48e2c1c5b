// SQL by hand: reads the log of all webhooks of an account through the index of each, in segments of bounded size.
import { column, type Queryable, queryRows, requireColumns, runStatement } from '@runhook/database';
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
  type Webhook,
  type WebhookState,
} from './account-log-conditions.ts';
import {
  type DeliveryView,
  deliveryView,
  findRowsByKeys,
  type LogRow,
  ROW_KEY,
  timestampOf,
} from './delivery.ts';
import {
  type LogCursor,
  type LogSegment,
  type Span,
  scanSegments,
  splitIntoSegments,
} from './log-segments.ts';

/** A delivery in a list with those of other webhooks. */
export interface AccountDeliveryView extends DeliveryView {
  /** Current name of the webhook, or its name when it was deleted. */
  webhook_name: string;
  webhook_state: WebhookState;
}

export interface AccountLogPage {
  rows: AccountDeliveryView[];
  /** Cursor of the next page; null on the last page. */
  next: LogCursor | null;
  /** Whether the page is not full because the limit of rows to read was reached. */
  isTruncated: boolean;
}

const ORDER = 'd.day DESC, d.created_at DESC, d.id DESC';
/** Maximum number of rows to read for one page: with one statement, and in total. */
const LIMITS = { perReadMax: 10_000, totalMax: 50_000 };

/**
 * Reads a page of an account's log, newest first. For a run or an event an index finds the rows. Otherwise each
 * webhook's index is read from its newest delivery, and the results are merged. If rows must be read to apply the
 * filters, reading stops after a bounded number of rows, and the cursor of the result continues there.
 */
export async function readAccountLog(
  database: Queryable,
  query: AccountLogQuery & { cursor: LogCursor | null; limit: number },
  limits = LIMITS,
): Promise<AccountLogPage> {
  const { filters, cursor, limit, webhooks } = query;
  const found: LogRow[] = [];
  let next: LogCursor | null = null;
  if (webhooks.size === 0) return { rows: [], next: null, isTruncated: false };
  if (filters.runId !== null || filters.eventId !== null) {
    found.push(...(await readRunOrEvent(database, query)));
  } else {
    const segments = splitIntoSegments(await readSpan(database, filters), cursor);
    const isExact = rowConditions(new Values(), filters).length === 0;
    const span = parseWindow(filters);
    next = await scanSegments<LogRow[]>(segments, {
      read: (segment, max) => readSegment(database, { ...query, segment, span, max: isExact ? null : max }),
      accept: (rows) => found.push(...rows) > limit,
      limits,
    });
  }
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  const isFull = found.length > limit && last !== undefined;
  return {
    rows: rows.map((row) => accountDeliveryView(row, webhooks)),
    next: isFull ? { day: last.day, createdAt: BigInt(last.created_at), id: last.id } : next,
    isTruncated: !isFull && next !== null,
  };
}

function parseWindow({ since, until }: AccountLogFilters): Pick<Span, 'since' | 'until'> {
  return { since: since === null ? null : BigInt(since), until: until === null ? null : BigInt(until) };
}

function accountDeliveryView(row: LogRow, webhooks: ReadonlyMap<string, Webhook>): AccountDeliveryView {
  const webhook = webhooks.get(row.subscription_id);
  return {
    ...deliveryView(row),
    webhook_name: webhook?.name ?? row.webhook_name,
    webhook_state: webhook?.state ?? 'deleted',
  };
}

async function readRunOrEvent(
  database: Queryable,
  query: AccountLogQuery & { cursor: LogCursor | null; limit: number },
): Promise<LogRow[]> {
  const values = new Values();
  const { cursor, limit } = query;
  const conditions = runOrEventConditions(values, query);
  if (cursor !== null) {
    const [day, createdAt, id] = [
      values.$(cursor.day),
      timestampOf(values.$(String(cursor.createdAt))),
      values.$(cursor.id),
    ];
    conditions.push(`(d.day, d.created_at, d.id) < (${day}::date, ${createdAt}, ${id}::text)`);
  }
  const text = `SELECT d.day::text AS day, d.id FROM deliveries d WHERE ${conditions.join(' AND ')}
    ORDER BY ${ORDER} LIMIT ${values.$(limit + 1)}`;
  return await findRowsByKeys(
    database,
    query.accountId,
    await queryRows(database, ROW_KEY, text, values.all),
  );
}

interface SegmentQuery extends AccountLogQuery {
  segment: LogSegment;
  span: Pick<Span, 'since' | 'until'>;
  limit: number;
  /** Maximum number of rows to read; null if every row that is read matches. */
  max: number | null;
}

/** Reads the newest matching rows of a segment, and returns how many rows were read. */
async function readSegment(
  database: Queryable,
  query: SegmentQuery,
): Promise<{ count: number; found: LogRow[] }> {
  const { filters, limit, max } = query;
  const values = new Values();
  const limitParameter = values.$(limit + 1);
  const sourceScans = sourcesOf(filters).map((source) => sourceSql(values, query, source, limitParameter));
  const scannedSql = `SELECT * FROM (${sourceScans.join(' UNION ALL ')}) read ${max === null ? '' : `LIMIT ${values.$(max + 1)}`}`;
  const matching = [`true`, ...rowConditions(values, filters)].join(' AND ');
  const page = `SELECT d.day, d.created_at, d.id FROM scanned d WHERE ${matching} ORDER BY ${ORDER} LIMIT ${limitParameter}`;
  const rows = await runStatement(
    database,
    `WITH scanned AS MATERIALIZED (${scannedSql})
     SELECT total.read_count, d.day::text AS day, d.id
     FROM (SELECT count(*)::int AS read_count FROM scanned) total LEFT JOIN (${page}) d ON true
     ORDER BY ${ORDER}`,
    values.all,
  );
  const [first] = rows;
  const keys = rows.filter(({ id }) => id !== null).filter((row) => requireColumns(row, ROW_KEY));
  return {
    // Exact reads cost no more than the page, so they do not count.
    count:
      max !== null && first && requireColumns(first, { read_count: column.integer }) ? first.read_count : 0,
    found: await findRowsByKeys(database, query.accountId, keys),
  };
}

const READ_COLUMNS =
  'd.day, d.created_at, d.id, d.run_id, d.job_id, d.event_type, d.http_status_code, d.error_code, d.duration_ms, d.status';

function sourceSql(values: Values, query: SegmentQuery, source: Source, limitParameter: string): string {
  const { accountId, webhooks, filters, segment, span, max } = query;
  const ids = `${values.$([...webhooks.keys()])}::text[]`;
  const where = [
    ...segmentConditions(values, accountId, segment, span),
    ...sourceConditions(values, source, filters),
  ].join(' AND ');
  // Pending deliveries are few and have a separate index.
  if (source === 'pending')
    return `SELECT ${READ_COLUMNS} FROM deliveries d
      WHERE d.subscription_id = ANY (${ids}) AND ${where}`;
  const columns = max === null ? 'd.day, d.created_at, d.id' : READ_COLUMNS;
  // Reads each webhook in index order with a limit. Otherwise the planner, which assumes that all webhooks are equally
  // busy, would read entire days for a webhook without deliveries.
  const rowLimit = max === null ? limitParameter : values.$(max + 1);
  return `SELECT read.* FROM unnest(${ids}) AS webhook (id)
    CROSS JOIN LATERAL (SELECT ${columns} FROM deliveries d WHERE d.subscription_id = webhook.id AND ${where}
      ORDER BY d.day DESC, d.created_at DESC, d.id DESC LIMIT ${rowLimit}) read`;
}
