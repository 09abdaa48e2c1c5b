import { DELIVERY_STATUSES, type DeliveryStatus } from './delivery.ts';

export interface HistogramBucket {
  /** Start of the bucket in microseconds since the epoch, as digits. */
  start: string;
  delivered_count: number;
  failed_count: number;
  pending_count: number;
  cancelled_count: number;
}

/** Response of `GET …/deliveries/histogram`; times are microseconds since the epoch, as digits. */
export interface HistogramView {
  since: string;
  until: string;
  bucket_seconds: number;
  /** Deliveries created before it are not counted, because too many rows would be read. Null if all are counted. */
  counted_since: string | null;
  totals: Omit<HistogramBucket, 'start'>;
  /** All buckets of the window, oldest first. The first may start before the window, and the last may end after it. */
  buckets: HistogramBucket[];
}

export const BUCKETS_WANTED = 60;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
/** Widths in seconds; each divides a UTC day. */
const WIDTHS = [
  1,
  5,
  15,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
];
const DAY = 24 * HOUR;

/** Returns the narrowest width for about 75 buckets or fewer. @param spanMicros length of the window */
export function bucketSeconds(spanMicros: bigint): number {
  const widthMin = Number(spanMicros / 1_000_000n) / (BUCKETS_WANTED * 1.25);
  return WIDTHS.find((width) => width >= widthMin) ?? DAY * Math.ceil(widthMin / DAY);
}

export interface Window {
  since: bigint;
  until: bigint;
}

/** Number of deliveries by status, by the start of the bucket in microseconds since the epoch. */
export type Counts = Map<string, Record<DeliveryStatus, number>>;

const ZERO_COUNTS: Readonly<Record<DeliveryStatus, number>> = {
  delivered: 0,
  failed: 0,
  pending: 0,
  cancelled: 0,
};

export function addDeliveries(
  { width, counts }: { width: bigint; counts: Counts },
  createdAtMicros: bigint,
  status: DeliveryStatus,
  deliveries: number,
): void {
  const start = String(createdAtMicros - (createdAtMicros % width));
  const count = counts.get(start) ?? { ...ZERO_COUNTS };
  count[status] += deliveries;
  counts.set(start, count);
}

export function histogramView(
  { since, until }: Window,
  width: bigint,
  counts: Counts,
  countedSince: bigint | null,
): HistogramView {
  const buckets: HistogramBucket[] = [];
  const sums = { ...ZERO_COUNTS };
  for (let start = since - (since % width); start < until; start += width) {
    const isCounted = countedSince === null || start + width > countedSince;
    const count = (isCounted ? counts.get(String(start)) : undefined) ?? ZERO_COUNTS;
    for (const status of DELIVERY_STATUSES) sums[status] += count[status];
    buckets.push({ start: String(start), ...countsView(count) });
  }
  return {
    since: String(since),
    until: String(until),
    bucket_seconds: Number(width / 1_000_000n),
    counted_since: countedSince === null ? null : String(countedSince),
    totals: countsView(sums),
    buckets,
  };
}

function countsView(count: Readonly<Record<DeliveryStatus, number>>): HistogramView['totals'] {
  return {
    delivered_count: count.delivered,
    failed_count: count.failed,
    pending_count: count.pending,
    cancelled_count: count.cancelled,
  };
}
