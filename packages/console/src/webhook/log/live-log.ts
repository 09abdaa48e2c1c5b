import { type Delivery, type DeliveryPage, isCountCapped, TOTAL_COUNT_MAX } from '../../api/types.ts';

/** A page of the log, and what is known of it from before. */
export interface LogState extends DeliveryPage {
  /** How many have come onto it since it was opened. */
  arrivedCount: number;
  /** When it was read as a whole, in milliseconds since the epoch. */
  wholeAtMs: number;
}

/** From where on a page must be read to see all that can change on it. @param since the window's own, or empty */
export function tailSince(rows: readonly Delivery[], since: string): string {
  const oldest = rows.reduce<bigint | null>((least, { created_at }) => {
    const micros = BigInt(created_at);
    return least === null || micros < least ? micros : least;
  }, null);
  if (oldest === null || (since !== '' && BigInt(since) > oldest)) return since;
  return String(oldest);
}

/**
 * The page after its tail was read again; null when it must be read as a whole: none of its rows is left among the
 * newest, or some have left it whose places others take.
 */
export function continuedLog(before: LogState, tail: DeliveryPage, pageSize: number): LogState | null {
  const known = new Set(before.rows.map(({ id }) => id));
  const arrived = tail.rows.filter(({ id }) => !known.has(id)).length;
  if (arrived === tail.rows.length) return null;
  const left = tail.rows.length < pageSize ? before.rows.length + arrived - tail.rows.length : 0;
  const totalCount = isCountCapped(before.totalCount)
    ? before.totalCount
    : Math.min(TOTAL_COUNT_MAX, before.totalCount + arrived - left);
  if (tail.rows.length < pageSize && totalCount > tail.rows.length) return null;
  return {
    rows: tail.rows,
    totalCount,
    arrivedCount: before.arrivedCount + arrived,
    wholeAtMs: before.wholeAtMs,
  };
}

/** What stands on the page, and how many newer ones wait for the reader. */
interface LiveRows {
  rows: Delivery[];
  waitingCount: number;
}

/**
 * What the page shows after the log was read again. At its top the newest come in; elsewhere the rows stay where they
 * are, each as it is now, and the newer ones are counted.
 * @param latest the first page as it is now, newest first
 * @param latestCount how many there are now in all
 * @param shownCount how many there were when `shown` was put on the page
 */
export function liveRows(
  shown: readonly Delivery[] | null,
  {
    latest,
    latestCount,
    shownCount,
  }: { latest: readonly Delivery[]; latestCount: number; shownCount: number },
  isAtTop: boolean,
): LiveRows {
  if (shown === null || shown.length === 0 || isAtTop) return { rows: [...latest], waitingCount: 0 };
  const now = new Map(latest.map((row) => [row.id, row]));
  const known = new Set(shown.map(({ id }) => id));
  const newest = latest.findIndex(({ id }) => known.has(id));
  // The count tells of more than a page holds; the rows tell it while the count stands at its ceiling.
  const waitingCount = Math.max(newest === -1 ? latest.length : newest, latestCount - shownCount);
  return { rows: shown.map((row) => now.get(row.id) ?? row), waitingCount };
}

/** Ids of those that are on the page for the first time. */
export function arrivedIds(before: readonly Delivery[], after: readonly Delivery[]): ReadonlySet<string> {
  const known = new Set(before.map(({ id }) => id));
  return new Set(after.map(({ id }) => id).filter((id) => !known.has(id)));
}
