import { type Delivery, type DeliveryPage, TOTAL_COUNT_MAX } from '../../api/types.ts';

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
  const totalCount =
    before.totalCount >= TOTAL_COUNT_MAX
      ? TOTAL_COUNT_MAX
      : Math.min(TOTAL_COUNT_MAX, before.totalCount + arrived - left);
  if (tail.rows.length < pageSize && totalCount > tail.rows.length) return null;
  return {
    rows: tail.rows,
    totalCount,
    arrivedCount: before.arrivedCount + arrived,
    wholeAtMs: before.wholeAtMs,
  };
}
