import type { Delivery } from '../../api/types.ts';

/** What stands on the page, and how many newer ones wait for the reader. */
export interface LiveRows {
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
