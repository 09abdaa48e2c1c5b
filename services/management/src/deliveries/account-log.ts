// SQL by hand: the log of all webhooks of an account, read through the index of each, in stretches that are bounded.
import { deliveryIdFor, idDay } from '@runhook/contract';
import { column, type Pool, queryRows, requireColumns, runStatement } from '@runhook/database';
import {
  DELIVERY_COLUMNS,
  DELIVERY_WITH_DATA,
  type DeliveryRow,
  type DeliveryStatus,
  type DeliveryView,
  deliveryView,
  timestampOf,
} from './delivery.ts';
import { DAY_MICROS, dayOf } from './page-seek.ts';
import { type DayPlace, type Span, type Stretch, stretchesOf, walk } from './stretches.ts';

/** Null filters let everything through. Times are microseconds since the epoch, as digits. */
export interface AccountLogFilters {
  runId: number | null;
  eventId: string | null;
  subscriptionIds: readonly string[] | null;
  jobId: number | null;
  status: DeliveryStatus | null;
  eventType: string | null;
  httpStatusCode: number | null;
  errorCode: string | null;
  durationMinMs: number | null;
  durationMaxMs: number | null;
  since: string | null;
  until: string | null;
}

export type WebhookState = 'active' | 'inactive' | 'deleted';

/** A delivery beside those of other webhooks. */
export interface AccountDeliveryView extends DeliveryView {
  /** As it is called now, or was when it was deleted. */
  webhook_name: string;
  webhook_state: WebhookState;
}

export interface AccountLogPage {
  rows: AccountDeliveryView[];
  /** Where the next page begins; null at the end. */
  next: DayPlace | null;
  /** The page has fewer than were asked for because so much was read for it. */
  isCut: boolean;
}

const WEBHOOK = {
  id: column.text,
  name: column.text,
  state: column.oneOf(['active', 'inactive', 'deleted'] as const),
};

export interface Webhook {
  id: string;
  name: string;
  state: WebhookState;
}

/** Of the webhooks that were deleted, the latest. */
const DELETED_MAX = 1_000;

const SELECT_WEBHOOKS = `
  SELECT id, name, CASE WHEN active THEN 'active' ELSE 'inactive' END AS state
  FROM subscriptions WHERE account_id = $1 AND deleted_at IS NULL AND ($2::text[] IS NULL OR id = ANY ($2))
  UNION ALL
  (SELECT id, name, 'deleted' FROM subscriptions
   WHERE account_id = $1 AND deleted_at IS NOT NULL AND ($2::text[] IS NULL OR id = ANY ($2))
   ORDER BY deleted_at DESC LIMIT ${DELETED_MAX})`;

/** The webhooks of the account that the filters leave, those too that were deleted since. */
export async function webhooksOf(
  pool: Pool,
  accountId: number,
  { subscriptionIds }: Pick<AccountLogFilters, 'subscriptionIds'>,
): Promise<Map<string, Webhook>> {
  const rows = await queryRows(pool, WEBHOOK, SELECT_WEBHOOKS, [accountId, subscriptionIds]);
  return new Map(rows.map((row) => [row.id, row]));
}

const OLDEST = { oldest: column.text };

// The default partition holds what came before its day had one.
const OLDEST_DAY = `
  SELECT least(
    (SELECT min(day) FROM deliveries_default),
    (SELECT min(to_date(right(child.relname, 8), 'YYYYMMDD'))
     FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
     WHERE i.inhparent = 'deliveries'::regclass AND child.relname <> 'deliveries_default'),
    (now() AT TIME ZONE 'UTC')::date
  )::text AS oldest`;

/** The days that the log has, as far as the window goes: one more on each side, as in the list of one subscription. */
export async function spanOf(
  pool: Pool,
  { since, until }: Pick<AccountLogFilters, 'since' | 'until'>,
): Promise<Span> {
  const [row] = await queryRows(pool, OLDEST, OLDEST_DAY, []);
  const window = {
    since: since === null ? null : BigInt(since),
    until: until === null ? null : BigInt(until),
  };
  const oldest = row?.oldest ?? '1970-01-01';
  const first = window.since === null ? oldest : dayOf(window.since - DAY_MICROS);
  const newest = dayOf(BigInt(Date.now()) * 1000n + DAY_MICROS);
  const last = window.until === null ? newest : dayOf(window.until + DAY_MICROS);
  return { ...window, firstDay: first > oldest ? first : oldest, lastDay: last < newest ? last : newest };
}

/** Collects the values of a statement; `$` gives the name of the parameter. */
export class Values {
  readonly all: unknown[] = [];

  $(value: unknown): string {
    this.all.push(value);
    return `$${this.all.length}`;
  }
}

/** The stretch and the window, of `deliveries d`. */
export function placeConditions(
  values: Values,
  stretch: Stretch,
  span: Pick<Span, 'since' | 'until'>,
): string[] {
  const { firstDay, lastDay, since, before } = stretch;
  const at = (micros: bigint) => timestampOf(values.$(String(micros)));
  const conditions = [
    firstDay === lastDay
      ? `d.day = ${values.$(firstDay)}::date`
      : `d.day >= ${values.$(firstDay)}::date AND d.day <= ${values.$(lastDay)}::date`,
  ];
  if (before !== null && before.id !== '')
    conditions.push(`(d.created_at, d.id) < (${at(before.createdAt)}, ${values.$(before.id)}::text)`);
  if (before !== null && before.id === '') conditions.push(`d.created_at < ${at(before.createdAt)}`);
  const lowest = since !== null && (span.since === null || since > span.since) ? since : span.since;
  if (lowest !== null) conditions.push(`d.created_at >= ${at(lowest)}`);
  if (span.until !== null) conditions.push(`d.created_at < ${at(span.until)}`);
  return conditions;
}

/** What no index leads to: to be asked of each row. */
export function rowConditions(values: Values, filters: AccountLogFilters): string[] {
  const { runId, jobId, eventType, httpStatusCode, errorCode, durationMinMs, durationMaxMs } = filters;
  const asked: [string, unknown][] = [
    ['d.run_id =', runId],
    ['d.job_id =', jobId],
    ['d.event_type =', eventType],
    ['d.http_status_code =', httpStatusCode],
    ['d.error_code =', errorCode],
    ['d.duration_ms >=', durationMinMs],
    ['d.duration_ms <=', durationMaxMs],
  ];
  const status = filters.status === 'delivered' ? [`d.status = 'delivered'`] : [];
  return [
    ...asked.filter(([, value]) => value !== null).map(([sql, value]) => `${sql} ${values.$(value)}`),
    ...status,
  ];
}

/** Which deliveries are looked at: by an index of all, or by those of the few that did not go well. */
export type Source = 'all' | 'recoverable' | 'pending';

const SOURCE_SQL: Readonly<Record<Exclude<Source, 'all'>, string>> = {
  recoverable: `d.status IN ('failed', 'cancelled')`,
  pending: `d.status = 'pending'`,
};

/** A latest attempt that failed left nothing delivered, so that only the others are looked at. */
export function sourcesOf({ status, httpStatusCode, errorCode }: AccountLogFilters): Source[] {
  if (status === 'pending') return ['pending'];
  if (status === 'failed' || status === 'cancelled') return ['recoverable'];
  const hasFailed =
    errorCode !== null || (httpStatusCode !== null && (httpStatusCode < 200 || httpStatusCode > 299));
  return hasFailed && status === null ? ['recoverable', 'pending'] : ['all'];
}

export function sourceConditions(values: Values, source: Source, { status }: AccountLogFilters): string[] {
  if (source === 'all') return [];
  const which = status === 'failed' || status === 'cancelled' ? [`d.status = ${values.$(status)}`] : [];
  return [SOURCE_SQL[source], ...which];
}

const ORDER = 'day DESC, created_at DESC, id DESC';
const FOUND = { ...DELIVERY_WITH_DATA, webhook_name: column.text, ordered_day: column.text };

type FoundRow = DeliveryRow & { webhook_name: string; ordered_day: string };

// Keys first; only the rows of the page are read whole, with their events.
const rowsOf = (keys: string) => `
  SELECT ${DELIVERY_COLUMNS}, d.webhook_name, e.data AS event_data, d.day::text AS ordered_day
  FROM (${keys}) k
  JOIN deliveries d ON d.day = k.day AND d.id = k.id
  LEFT JOIN events e ON e.day = d.day AND e.id = d.event_id
  ORDER BY d.day DESC, d.created_at DESC, d.id DESC`;

/** What an account log is read for. */
export interface AccountLogQuery {
  accountId: number;
  webhooks: ReadonlyMap<string, Webhook>;
  filters: AccountLogFilters;
}

/** Of one page. */
const LIMITS = { atOnce: 10_000, inAll: 50_000 };

/**
 * A page of an account's log, newest first. By run or by event an index leads to the rows. Else each webhook's index is
 * read from its newest delivery on and they are merged; where rows have to be read to be told apart, that ends after a
 * bounded number of them, and the answer says from where to go on.
 */
export async function readAccountLog(
  pool: Pool,
  query: AccountLogQuery & { from: DayPlace | null; limit: number },
  limits = LIMITS,
): Promise<AccountLogPage> {
  const { filters, from, limit, webhooks } = query;
  const found: FoundRow[] = [];
  let next: DayPlace | null = null;
  if (webhooks.size === 0) return { rows: [], next: null, isCut: false };
  if (filters.runId !== null || filters.eventId !== null) {
    found.push(...(await readNamed(pool, query)));
  } else {
    const stretches = stretchesOf(await spanOf(pool, filters), from);
    const isExact = rowConditions(new Values(), filters).length === 0;
    const span = windowOf(filters);
    next = await walk<FoundRow[]>(stretches, {
      read: (stretch, max) => readStretch(pool, { ...query, stretch, span, max: isExact ? null : max }),
      take: (rows) => found.push(...rows) > limit,
      limits,
    });
  }
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  const isFull = found.length > limit && last !== undefined;
  return {
    rows: rows.map((row) => accountDeliveryView(row, webhooks)),
    next: isFull ? { day: last.ordered_day, createdAt: BigInt(last.created_at), id: last.id } : next,
    isCut: !isFull && next !== null,
  };
}

function windowOf({ since, until }: AccountLogFilters): Pick<Span, 'since' | 'until'> {
  return { since: since === null ? null : BigInt(since), until: until === null ? null : BigInt(until) };
}

function accountDeliveryView(row: FoundRow, webhooks: ReadonlyMap<string, Webhook>): AccountDeliveryView {
  const webhook = webhooks.get(row.subscription_id);
  return {
    ...deliveryView(row),
    webhook_name: webhook?.name ?? row.webhook_name,
    webhook_state: webhook?.state ?? 'deleted',
  };
}

/** What the conditions for a run or an event are; the delivery of an event to a webhook has a derived id. */
export function namedConditions(values: Values, { accountId, webhooks, filters }: AccountLogQuery): string[] {
  const { eventId, since, until, status } = filters;
  const ids = [...webhooks.keys()];
  const conditions = [`d.account_id = ${values.$(accountId)}`, ...rowConditions(values, filters)];
  if (eventId !== null) {
    conditions.push(`d.day = ${values.$(idDay('event', eventId))}::date`);
    conditions.push(`d.id = ANY (${values.$(ids.map((id) => deliveryIdFor(eventId, id)))}::text[])`);
  } else if (filters.subscriptionIds !== null)
    conditions.push(`d.subscription_id = ANY (${values.$(ids)}::text[])`);
  if (status !== null && status !== 'delivered') conditions.push(`d.status = ${values.$(status)}`);
  if (since !== null) conditions.push(`d.created_at >= ${timestampOf(values.$(since))}`);
  if (until !== null) conditions.push(`d.created_at < ${timestampOf(values.$(until))}`);
  return conditions;
}

async function readNamed(
  pool: Pool,
  query: AccountLogQuery & { from: DayPlace | null; limit: number },
): Promise<FoundRow[]> {
  const values = new Values();
  const { from, limit } = query;
  const conditions = namedConditions(values, query);
  if (from !== null) {
    const [day, createdAt, id] = [
      values.$(from.day),
      timestampOf(values.$(String(from.createdAt))),
      values.$(from.id),
    ];
    conditions.push(`(d.day, d.created_at, d.id) < (${day}::date, ${createdAt}, ${id}::text)`);
  }
  const keys = `SELECT d.day, d.created_at, d.id FROM deliveries d WHERE ${conditions.join(' AND ')}
    ORDER BY ${ORDER} LIMIT ${values.$(limit + 1)}`;
  return (await queryRows(pool, FOUND, rowsOf(keys), values.all)) as FoundRow[];
}

interface StretchQuery extends AccountLogQuery {
  stretch: Stretch;
  span: Pick<Span, 'since' | 'until'>;
  limit: number;
  /** Rows to be read at most; null where each that is read is of the page. */
  max: number | null;
}

/** The newest of a stretch, and how many rows were read for them. */
async function readStretch(pool: Pool, query: StretchQuery): Promise<{ count: number; found: FoundRow[] }> {
  const { filters, limit, max } = query;
  const values = new Values();
  const wanted = values.$(limit + 1);
  const read = sourcesOf(filters).map((source) => scanOf(values, query, source, wanted));
  const scanned = `SELECT * FROM (${read.join(' UNION ALL ')}) read ${max === null ? '' : `LIMIT ${values.$(max + 1)}`}`;
  const matching = [`true`, ...rowConditions(values, filters)].join(' AND ');
  const page = rowsOf(
    `SELECT d.day, d.id FROM scanned d WHERE ${matching} ORDER BY ${ORDER} LIMIT ${wanted}`,
  );
  const rows = await runStatement(
    pool,
    `WITH scanned AS MATERIALIZED (${scanned})
     SELECT total.read_count, page.* FROM (SELECT count(*)::int AS read_count FROM scanned) total
     LEFT JOIN (${page}) page ON true
     ORDER BY page.ordered_day DESC, page.created_at::bigint DESC, page.id DESC`,
    values.all,
  );
  const [first] = rows;
  return {
    // The exact ones cost no more than the page that they are of.
    count:
      max !== null && first && requireColumns(first, { read_count: column.integer }) ? first.read_count : 0,
    found: rows.filter(({ id }) => id !== null).filter((row) => requireColumns(row, FOUND)),
  };
}

const READ_COLUMNS =
  'd.day, d.created_at, d.id, d.run_id, d.job_id, d.event_type, d.http_status_code, d.error_code, d.duration_ms, d.status';

function scanOf(values: Values, query: StretchQuery, source: Source, wanted: string): string {
  const { accountId, webhooks, filters, stretch, span, max } = query;
  const ids = `${values.$([...webhooks.keys()])}::text[]`;
  const where = [
    ...placeConditions(values, stretch, span),
    ...sourceConditions(values, source, filters),
  ].join(' AND ');
  // Those that are pending are few, and in an index of their own.
  if (source === 'pending')
    return `SELECT ${READ_COLUMNS} FROM deliveries d
      WHERE d.account_id = ${values.$(accountId)} AND d.subscription_id = ANY (${ids}) AND ${where}`;
  const columns = max === null ? 'd.day, d.created_at, d.id' : READ_COLUMNS;
  const order = max === null ? `ORDER BY d.day DESC, d.created_at DESC, d.id DESC LIMIT ${wanted}` : '';
  return `SELECT read.* FROM unnest(${ids}) AS webhook (id)
    CROSS JOIN LATERAL (SELECT ${columns} FROM deliveries d WHERE d.subscription_id = webhook.id AND ${where} ${order}) read`;
}
