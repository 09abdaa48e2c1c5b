import { type Delivery, type DeliveryPage, isCountCapped, TOTAL_COUNT_MAX } from '../../api/types.ts';

/** A page of the log, with state from earlier reads. */
export interface LogState extends DeliveryPage {
  /** Number of deliveries that have arrived for this page of the log since it was first read. */
  arrivedCount: number;
  /** Time of the last full read, in ms since the epoch. */
  fullReadAtMs: number;
}

/**
 * Returns the start of the range that must be read to get all rows of the page again. @param since start of the filter's
 * range, or empty
 */
export function tailSince(rows: readonly Delivery[], since: string): string {
  const oldest = rows.reduce<bigint | null>((least, { created_at }) => {
    const micros = BigInt(created_at);
    return least === null || micros < least ? micros : least;
  }, null);
  if (oldest === null || (since !== '' && BigInt(since) > oldest)) return since;
  return String(oldest);
}

/**
 * Merges `tail`, the rows since the oldest row of the page, into the state of the page. Returns null if the complete
 * page must be read: `tail` has none of its rows, or rows have disappeared, so that older ones must fill the page.
 */
export function mergeTail(before: LogState, tail: DeliveryPage, pageSize: number): LogState | null {
  const shownIds = new Set(before.rows.map(({ id }) => id));
  const newCount = tail.rows.filter(({ id }) => !shownIds.has(id)).length;
  if (newCount === tail.rows.length) return null;
  const removedCount = tail.rows.length < pageSize ? before.rows.length + newCount - tail.rows.length : 0;
  const totalCount = isCountCapped(before.totalCount)
    ? before.totalCount
    : Math.min(TOTAL_COUNT_MAX, before.totalCount + newCount - removedCount);
  if (tail.rows.length < pageSize && totalCount > tail.rows.length) return null;
  return {
    rows: tail.rows,
    totalCount,
    arrivedCount: before.arrivedCount + newCount,
    fullReadAtMs: before.fullReadAtMs,
  };
}

/** Rows on the page, and the number of newer ones that are not shown yet. */
interface VisibleRows {
  rows: Delivery[];
  waitingCount: number;
}

/**
 * Returns the rows to show after a read. At the top of the log, newer rows are inserted; elsewhere the shown rows stay, with
 * updated values, and newer ones are counted.
 * @param latest the current rows of the page, newest first
 * @param latestCount current number of arrived deliveries
 * @param shownCount number of arrived deliveries when `shown` was rendered
 */
export function selectVisibleRows(
  shown: readonly Delivery[] | null,
  {
    latest,
    latestCount,
    shownCount,
  }: { latest: readonly Delivery[]; latestCount: number; shownCount: number },
  isAtTop: boolean,
): VisibleRows {
  if (shown === null || shown.length === 0 || isAtTop) return { rows: [...latest], waitingCount: 0 };
  const latestById = new Map(latest.map((row) => [row.id, row]));
  const shownIds = new Set(shown.map(({ id }) => id));
  const firstShownIndex = latest.findIndex(({ id }) => shownIds.has(id));
  // The counts include rows beyond the page. The index covers the case that the counts have reached their limit.
  const waitingCount = Math.max(
    firstShownIndex === -1 ? latest.length : firstShownIndex,
    latestCount - shownCount,
  );
  return { rows: shown.map((row) => latestById.get(row.id) ?? row), waitingCount };
}

/** Returns the ids of rows that were not on the page before. */
export function findNewIds(previous: readonly Delivery[], current: readonly Delivery[]): ReadonlySet<string> {
  const previousIds = new Set(previous.map(({ id }) => id));
  return new Set(current.map(({ id }) => id).filter((id) => !previousIds.has(id)));
}
