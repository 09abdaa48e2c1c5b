// SQL by hand: counts deliveries and events of a window that is exact to the microsecond, page by page.
import type { EventSelection } from '@runhook/contract';
import {
  column,
  type EventInclusion,
  type EventState,
  FIRST_EVENT,
  FIRST_PAGE_EVENTS,
  loadEventsToRecover,
  nextPageLimit,
  type Queryable,
  queryRows,
  statesToRecover,
} from '@runhook/database';
import { type LogKey, microsOf, timestampOf } from './delivery.ts';

/** Maximum number of events that a count reads, and of deliveries that it counts. */
export const RECOVERY_COUNT_MAX = 100_000;
/** Time after which a count ends, so that the request ends within its deadline. */
const COUNT_MS = 4_000;
const PAGE_SIZE_MAX = 1_000;

/** A window with an end that is not in the future; microseconds since the epoch, as digits. */
export interface RecoveryWindow {
  since: string;
  until: string;
}

const WINDOW_END = { until: column.digits };
const SELECT_WINDOW_END = `SELECT ${microsOf(`least(coalesce(${timestampOf('$1')}, now()), now())`)} AS until`;

/** Returns the end of a window: the requested one, but at most the database's current time. */
export async function readWindowEnd(database: Queryable, until: string | undefined): Promise<string> {
  const [row] = await queryRows(database, WINDOW_END, SELECT_WINDOW_END, [until ?? null]);
  return row?.until ?? '';
}

/** Number of deliveries by the state in which a recovery finds them. */
export type RecoveryCounts = Record<'unsent' | 'failed' | 'cancelled' | 'delivered', number>;

export interface RecoveryCount {
  /** Number of deliveries that the recovery sends. */
  totalCount: number;
  counts: RecoveryCounts;
  /** Whether the count ended before the end of the window, so that there may be more. */
  isLimited: boolean;
}

export const NO_COUNTS: RecoveryCounts = { unsent: 0, failed: 0, cancelled: 0, delivered: 0 };

const COUNTED = { total: column.integer };
const COUNT_DELIVERIES = `
  SELECT count(*)::int AS total FROM (
    SELECT 1 FROM deliveries d
    WHERE d.account_id = $1 AND d.subscription_id = $2 AND d.status = $5 AND d.status IN ('failed', 'cancelled')
      AND d.created_at >= ${timestampOf('$3')} AND d.created_at < ${timestampOf('$4')}
      AND d.day <= (${timestampOf('$4')} AT TIME ZONE 'UTC')::date + 1
      AND d.completed_at <= now()
    LIMIT ${RECOVERY_COUNT_MAX} + 1) AS matching`;

/** Counts the deliveries of a status that a recovery of deliveries would send. */
export async function countDeliveries(
  database: Queryable,
  { accountId, subscriptionId }: LogKey,
  { since, until }: RecoveryWindow,
  status: 'failed' | 'cancelled',
): Promise<RecoveryCount> {
  const values = [accountId, subscriptionId, since, until, status];
  const [row] = await queryRows(database, COUNTED, COUNT_DELIVERIES, values);
  const total = row?.total ?? 0;
  const totalCount = Math.min(total, RECOVERY_COUNT_MAX);
  return { totalCount, counts: { ...NO_COUNTS, [status]: totalCount }, isLimited: total > totalCount };
}

interface CountedEvents extends LogKey {
  selection: EventSelection;
  window: RecoveryWindow;
  include: EventInclusion;
  resendDelivered: boolean;
}

/**
 * Counts the events of a window by their state, as a dispatcher then sends them, in pages of statements that each read a
 * bounded number of rows.
 */
export async function countEvents(database: Queryable, query: CountedEvents): Promise<RecoveryCount> {
  const { accountId, subscriptionId, selection, window, include, resendDelivered } = query;
  const [since, until] = [timestampText(window.since), timestampText(window.until)];
  const counts = { ...NO_COUNTS };
  const endMs = performance.now() + COUNT_MS;
  let after = FIRST_EVENT;
  let isLimited = false;
  let limit = FIRST_PAGE_EVENTS;
  for (let read = 0; ; ) {
    const page = await loadEventsToRecover(database, {
      ...{ accountId, subscriptionId, selection, since, until, after },
      endedUntil: 'infinity',
      limit,
    });
    for (const { state } of page.events) if (isCounted(state)) counts[state]++;
    read += page.events.length;
    after = page.events.at(-1) ?? after;
    limit = nextPageLimit(page, limit, PAGE_SIZE_MAX);
    isLimited = !page.isLast && (read >= RECOVERY_COUNT_MAX || performance.now() > endMs);
    if (page.isLast || isLimited) break;
  }
  const states = statesToRecover(include, resendDelivered).filter(isCounted);
  return { totalCount: states.reduce((sum, state) => sum + counts[state], 0), counts, isLimited };
}

function isCounted(state: EventState): state is keyof RecoveryCounts {
  return state in NO_COUNTS;
}

/** Converts microseconds since the epoch to PostgreSQL's format. */
function timestampText(micros: string): string {
  const ms = Number(BigInt(micros) / 1_000n);
  const fraction = String(BigInt(micros) % 1_000n).padStart(3, '0');
  return `${new Date(ms).toISOString().slice(0, -1)}${fraction}Z`;
}
