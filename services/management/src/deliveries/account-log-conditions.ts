// SQL by hand: conditions for a part of the logs of an account’s webhooks that an index serves, with the days to read.
import { deliveryIdFor, idDay } from '@runhook/contract';
import { column, type Queryable, queryRows } from '@runhook/database';
import { BLOCKED_CODES, NO_ADDRESS } from '@runhook/egress';
import { type DeliveryStatus, timestampOf } from './delivery.ts';
import type { LogSegment, Span } from './log-segments.ts';
import { DAY_MICROS, dayOf } from './page-locator.ts';

/** Null filters match everything. Times are microseconds since the epoch, as digits. */
export interface AccountLogFilters {
  runId: number | null;
  eventId: string | null;
  subscriptionIds: readonly string[] | null;
  jobId: number | null;
  status: DeliveryStatus | null;
  eventType: string | null;
  httpStatusCode: number | null;
  /** As users see it. */
  errorCode: string | null;
  durationMinMs: number | null;
  durationMaxMs: number | null;
  since: string | null;
  until: string | null;
}

/** The account, webhooks and filters of a read. */
export interface AccountLogQuery {
  accountId: number;
  webhooks: ReadonlyMap<string, Webhook>;
  filters: AccountLogFilters;
}

export type WebhookState = 'active' | 'inactive' | 'deleted';

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

/** Maximum number of deleted webhooks that are read, most recently deleted first. */
const DELETED_MAX = 1_000;

const SELECT_WEBHOOKS = `
  SELECT id, name, CASE WHEN active THEN 'active' ELSE 'inactive' END AS state
  FROM subscriptions WHERE account_id = $1 AND deleted_at IS NULL AND ($2::text[] IS NULL OR id = ANY ($2))
  UNION ALL
  (SELECT id, name, 'deleted' FROM subscriptions
   WHERE account_id = $1 AND deleted_at IS NOT NULL AND ($2::text[] IS NULL OR id = ANY ($2))
   ORDER BY deleted_at DESC LIMIT ${DELETED_MAX})`;

/** Returns the account's webhooks with these ids (null: all), including up to {@link DELETED_MAX} deleted ones. */
export async function findWebhooks(
  database: Queryable,
  accountId: number,
  { subscriptionIds }: Pick<AccountLogFilters, 'subscriptionIds'>,
): Promise<Map<string, Webhook>> {
  const rows = await queryRows(database, WEBHOOK, SELECT_WEBHOOKS, [accountId, subscriptionIds]);
  return new Map(rows.map((row) => [row.id, row]));
}

const OLDEST_DAY_COLUMNS = { oldest: column.text };

// The default partition holds deliveries of days that had no partition yet.
const OLDEST_DAY = `
  SELECT least(
    (SELECT min(day) FROM deliveries_default),
    (SELECT min(to_date(substring(child.relname FROM '_([0-9]{8})'), 'YYYYMMDD'))
     FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
     WHERE i.inhparent = 'deliveries'::regclass AND child.relname <> 'deliveries_default'),
    (now() AT TIME ZONE 'UTC')::date
  )::text AS oldest`;

/** Assumed maximum difference between the clocks of the database and this process. */
const CLOCK_SKEW_MAX_MICROS = 10n * 60_000_000n;

/** Returns the window, and its days in the log with one more on each side, as in the list of one subscription. */
export async function readSpan(
  database: Queryable,
  { since, until }: Pick<AccountLogFilters, 'since' | 'until'>,
): Promise<Span> {
  const [row] = await queryRows(database, OLDEST_DAY_COLUMNS, OLDEST_DAY, []);
  const nowMicros = BigInt(Date.now()) * 1000n;
  const latest = nowMicros + CLOCK_SKEW_MAX_MICROS;
  const window = {
    since: since === null ? null : BigInt(since),
    until: until === null || BigInt(until) > latest ? latest : BigInt(until),
  };
  const oldest = row?.oldest ?? '1970-01-01';
  const first = window.since === null ? oldest : dayOf(window.since - DAY_MICROS);
  const newest = dayOf(nowMicros + DAY_MICROS);
  const [lastDay = newest] = [newest, dayOf(window.until + DAY_MICROS)].sort();
  return { ...window, firstDay: first > oldest ? first : oldest, lastDay };
}

/** Collects the values of a statement; `$` adds one and returns the name of its parameter. */
export class Values {
  readonly all: unknown[] = [];

  $(value: unknown): string {
    this.all.push(value);
    return `$${this.all.length}`;
  }
}

/** Returns the conditions for the account, the segment and the window, for `deliveries d`. */
export function segmentConditions(
  values: Values,
  accountId: number,
  segment: LogSegment,
  span: Pick<Span, 'since' | 'until'>,
): string[] {
  const { firstDay, lastDay, since, endPosition } = segment;
  const timestampSql = (micros: bigint) => timestampOf(values.$(String(micros)));
  const conditions = [
    `d.account_id = ${values.$(accountId)}`,
    firstDay === lastDay
      ? `d.day = ${values.$(firstDay)}::date`
      : `d.day >= ${values.$(firstDay)}::date AND d.day <= ${values.$(lastDay)}::date`,
  ];
  if (endPosition !== null && endPosition.id !== '')
    conditions.push(
      `(d.created_at, d.id) < (${timestampSql(endPosition.createdAt)}, ${values.$(endPosition.id)}::text)`,
    );
  if (endPosition !== null && endPosition.id === '')
    conditions.push(`d.created_at < ${timestampSql(endPosition.createdAt)}`);
  const lowest = since !== null && (span.since === null || since > span.since) ? since : span.since;
  if (lowest !== null) conditions.push(`d.created_at >= ${timestampSql(lowest)}`);
  if (span.until !== null) conditions.push(`d.created_at < ${timestampSql(span.until)}`);
  return conditions;
}

/** The duration as users see it: see `deliveryView`. */
const DURATION = `CASE
  WHEN d.error_code IN (${BLOCKED_CODES.map((code) => `'${code}'`).join(', ')}) OR d.error_code IS NULL AND d.http_status_code = 502
  THEN NULL ELSE d.duration_ms END`;

/** Returns the conditions without an index, which are checked for each row. */
export function rowConditions(values: Values, filters: AccountLogFilters): string[] {
  const { runId, jobId, eventType, httpStatusCode, errorCode, durationMinMs, durationMaxMs } = filters;
  const comparisons: [string, unknown][] = [
    ['d.run_id =', runId],
    ['d.job_id =', jobId],
    ['d.event_type =', eventType],
    ['d.http_status_code =', httpStatusCode],
    [`${DURATION} >=`, durationMinMs],
    [`${DURATION} <=`, durationMaxMs],
  ];
  const status = filters.status === 'delivered' ? [`d.status = 'delivered'`] : [];
  return [
    ...comparisons.filter(([, value]) => value !== null).map(([sql, value]) => `${sql} ${values.$(value)}`),
    ...(errorCode === null ? [] : [`d.error_code = ANY (${values.$(storedCodes(errorCode))}::text[])`]),
    ...status,
  ];
}

/** Returns the codes of the rows that have this code in the API. */
function storedCodes(code: string): readonly string[] {
  return code === NO_ADDRESS ? BLOCKED_CODES : [code];
}

/** The deliveries that are read: all, by the index of all deliveries, or those of a smaller partial index. */
export type Source = 'all' | 'recoverable' | 'pending';

const SOURCE_SQL: Readonly<Record<Exclude<Source, 'all'>, string>> = {
  recoverable: `d.status IN ('failed', 'cancelled')`,
  pending: `d.status = 'pending'`,
};

/** Returns the sources that can match. A delivery whose latest attempt failed is in one of the partial indexes. */
export function sourcesOf({ status, httpStatusCode, errorCode }: AccountLogFilters): Source[] {
  if (status === 'pending') return ['pending'];
  if (status === 'failed' || status === 'cancelled') return ['recoverable'];
  const hasFailed =
    errorCode !== null || (httpStatusCode !== null && (httpStatusCode < 200 || httpStatusCode > 299));
  return hasFailed && status === null ? ['recoverable', 'pending'] : ['all'];
}

export function sourceConditions(values: Values, source: Source, { status }: AccountLogFilters): string[] {
  if (source === 'all') return [];
  const statusConditions =
    status === 'failed' || status === 'cancelled' ? [`d.status = ${values.$(status)}`] : [];
  return [SOURCE_SQL[source], ...statusConditions];
}

/** Returns the conditions for a run or an event. The id of a delivery is derived from those of event and webhook. */
export function runOrEventConditions(
  values: Values,
  { accountId, webhooks, filters }: AccountLogQuery,
): string[] {
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
