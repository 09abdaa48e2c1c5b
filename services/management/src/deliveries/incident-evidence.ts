// SQL by hand: reads the logs of several subscriptions, each in its own time and days, in one statement.
import { type Cause, findCause } from '@runhook/contract/causes';
import { column, type Queryable, queryRows, type RowOf } from '@runhook/database';
import { publicErrorCode } from '@runhook/egress';
import { microsOf, timestampOf } from './delivery.ts';

/** Number of deliveries of a failure period at which counting stops. */
export const COUNT_MAX = 5_000;
/** Number of the newest deliveries of a failure period that are examined for causes. */
export const SAMPLE_MAX = 100;

/** A period in which the attempts of a subscription failed. */
export interface FailurePeriod {
  subscriptionId: string;
  /** Microseconds since the epoch, as digits. */
  since: string;
  /** Null while it still fails. */
  until: string | null;
}

/** A reason why deliveries fail. */
export interface CauseView extends Cause {
  http_status_code: string;
  error_code: string | null;
  /** Number of examined deliveries with this cause. */
  delivery_count: number;
  /** The latest delivery that failed with this cause. */
  delivery_id: string;
  attempted_at: string;
}

export interface Evidence {
  counts: {
    delivery_count: number;
    failed_count: number;
    pending_count: number;
    run_count: number;
    first_delivery: { id: string; created_at: string } | null;
    last_delivery: { id: string; created_at: string } | null;
  };
  /** The most frequent cause first. */
  causes: CauseView[];
}

const PERIODS = `
  (SELECT ordinal::int, subscription_id, ${timestampOf('since_micros')} AS since,
     coalesce(${timestampOf('until_micros')}, now()) AS until
   FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY
     AS t (subscription_id, since_micros, until_micros, ordinal)) w`;

const dayOf = (timestamp: string) => `(${timestamp} AT TIME ZONE 'UTC')::date`;

// Includes deliveries created up to 15 s before the first failed attempt. The day of an id may differ by one.
const FAILING = `
  FROM deliveries d
  WHERE d.account_id = $4 AND d.subscription_id = w.subscription_id
    AND d.day >= ${dayOf('w.since')} - 1 AND d.day <= ${dayOf('w.until')} + 1
    AND d.created_at >= w.since - interval '15 seconds' AND d.created_at <= w.until
    AND (d.status IN ('failed', 'pending') OR d.attempt_count > CASE d.status WHEN 'delivered' THEN 1 ELSE 0 END)`;

const boundaryDeliverySql = (order: 'ASC' | 'DESC') => `
  LEFT JOIN LATERAL (SELECT d.id, ${microsOf('d.created_at')} AS created_at ${FAILING}
    ORDER BY d.day ${order}, d.created_at ${order}, d.id ${order} LIMIT 1)`;

const SELECT_COUNTS = `
  SELECT w.ordinal, c.*, f.id AS first_id, f.created_at AS first_at, l.id AS last_id, l.created_at AS last_at
  FROM ${PERIODS}
  CROSS JOIN LATERAL (
    SELECT count(*)::int AS delivery_count, count(*) FILTER (WHERE status = 'failed')::int AS failed_count,
      count(*) FILTER (WHERE status = 'pending')::int AS pending_count, count(DISTINCT run_id)::int AS run_count
    FROM (SELECT d.status, d.run_id ${FAILING} LIMIT ${COUNT_MAX}) failing) c
  ${boundaryDeliverySql('ASC')} f ON true ${boundaryDeliverySql('DESC')} l ON true`;

const COUNTS_ROW = {
  /** Position in the list of periods, from 1. */
  ordinal: column.integer,
  delivery_count: column.integer,
  failed_count: column.integer,
  pending_count: column.integer,
  run_count: column.integer,
  first_id: column.orNull(column.text),
  first_at: column.orNull(column.digits),
  last_id: column.orNull(column.text),
  last_at: column.orNull(column.digits),
};

const SELECT_REASONS = `
  SELECT w.ordinal, a.http_status_code, a.error_code, a.error_message, left(a.response_body, 2000) AS response_body,
    count(*)::int AS deliveries, (array_agg(a.response_headers ORDER BY a.started_at DESC))[1] AS response_headers,
    (array_agg(d.id ORDER BY a.started_at DESC))[1] AS delivery_id, ${microsOf('max(a.started_at)')} AS attempted_at
  FROM ${PERIODS}
  CROSS JOIN LATERAL (
    SELECT d.day, d.id ${FAILING} ORDER BY d.day DESC, d.created_at DESC, d.id DESC LIMIT ${SAMPLE_MAX}) d
  CROSS JOIN LATERAL (
    SELECT * FROM attempts a
    WHERE a.day = d.day AND a.delivery_id = d.id AND a.account_id = $4 AND a.error_code IS NOT NULL AND a.started_at <= w.until
    ORDER BY a.number DESC LIMIT 1) a
  GROUP BY 1, 2, 3, 4, 5`;

const REASON_ROW = {
  ordinal: column.integer,
  http_status_code: column.integer,
  error_code: column.text,
  error_message: column.orNull(column.text),
  response_body: column.orNull(column.text),
  response_headers: column.orNull(column.textsByName),
  deliveries: column.integer,
  delivery_id: column.text,
  attempted_at: column.digits,
};

/** Returns the counts and causes of each period, in input order. */
export async function readEvidence(
  database: Queryable,
  accountId: number,
  periods: readonly FailurePeriod[],
): Promise<Evidence[]> {
  if (periods.length === 0) return [];
  const values = [
    periods.map(({ subscriptionId }) => subscriptionId),
    periods.map(({ since }) => since),
    periods.map(({ until }) => until),
    accountId,
  ];
  const [counts, reasons] = await Promise.all([
    queryRows(database, COUNTS_ROW, SELECT_COUNTS, values),
    queryRows(database, REASON_ROW, SELECT_REASONS, values),
  ]);
  const countsByOrdinal = new Map(counts.map((row) => [row.ordinal, row]));
  return periods.map((_, index) => {
    const ordinal = index + 1;
    const row = countsByOrdinal.get(ordinal);
    if (!row) throw new Error('no counts for a failure period');
    return {
      counts: countsOf(row),
      causes: causesOf(reasons.filter((reason) => reason.ordinal === ordinal)),
    };
  });
}

function countsOf(row: RowOf<typeof COUNTS_ROW>): Evidence['counts'] {
  const { delivery_count, failed_count, pending_count, run_count, first_id, first_at, last_id, last_at } =
    row;
  return {
    delivery_count,
    failed_count,
    pending_count,
    run_count,
    first_delivery: deliveryAt(first_id, first_at),
    last_delivery: deliveryAt(last_id, last_at),
  };
}

function deliveryAt(id: string | null, createdAt: string | null): { id: string; created_at: string } | null {
  return id === null || createdAt === null ? null : { id, created_at: createdAt };
}

/** Groups failures by cause: different responses may have the same one. */
function causesOf(reasons: readonly RowOf<typeof REASON_ROW>[]): CauseView[] {
  const causes = new Map<string, CauseView>();
  for (const reason of [...reasons].sort((a, b) =>
    BigInt(a.attempted_at) < BigInt(b.attempted_at) ? 1 : -1,
  )) {
    const errorCode = publicErrorCode(reason.error_code);
    const cause = findCause({
      httpStatusCode: reason.http_status_code,
      errorCode,
      errorMessage: reason.error_message,
      responseHeaders: reason.response_headers,
      responseBody: reason.response_body,
    });
    const existing = causes.get(cause.code);
    if (existing) existing.delivery_count += reason.deliveries;
    else
      causes.set(cause.code, {
        ...cause,
        http_status_code: String(reason.http_status_code),
        error_code: errorCode,
        delivery_count: reason.deliveries,
        delivery_id: reason.delivery_id,
        attempted_at: reason.attempted_at,
      });
  }
  return [...causes.values()].sort((a, b) => b.delivery_count - a.delivery_count);
}
