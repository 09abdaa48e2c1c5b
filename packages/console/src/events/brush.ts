import type { HistogramBucket } from '../api/types.ts';

/** Selected bars by index; `head` may be before `anchor`. */
export interface Brush {
  anchor: number;
  head: number;
}

export function normalizeBrush({ anchor, head }: Brush): { first: number; last: number } {
  return { first: Math.min(anchor, head), last: Math.max(anchor, head) };
}

export type BrushKey =
  | { kind: 'move'; to: number }
  | { kind: 'extend'; to: number }
  | { kind: 'choose' }
  | { kind: 'clear' }
  | null;

/** Returns the action of a key on the bar with index `at` of `count` bars; null if it has none. */
export function brushKey(
  { key, shiftKey }: { key: string; shiftKey: boolean },
  at: number,
  count: number,
): BrushKey {
  if (key === 'Enter' || key === ' ') return { kind: 'choose' };
  if (key === 'Escape') return { kind: 'clear' };
  const targets: Record<string, number> = {
    ArrowLeft: Math.max(0, at - 1),
    ArrowRight: Math.min(count - 1, at + 1),
    Home: 0,
    End: count - 1,
  };
  const to = targets[key];
  return to === undefined ? null : { kind: shiftKey ? 'extend' : 'move', to };
}

/** Returns the time range of the selected bars, in milliseconds since the epoch. */
export function toTimeSpan(
  buckets: readonly Pick<HistogramBucket, 'start'>[],
  bucketSeconds: number,
  brush: Brush,
) {
  const { first, last } = normalizeBrush(brush);
  const startMs = (index: number) => Math.floor(Number(buckets[index]?.start ?? 0) / 1_000);
  return { fromMs: startMs(first), toMs: startMs(last) + bucketSeconds * 1_000 };
}

const DAY_MS = 86_400_000;
const utcTimeFormat = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
});
const secondFormat = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
});
const dayFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Returns the label of a bar, in UTC: a day if the range is longer than two days, otherwise a time. */
export function barLabel(startMs: number, spanMs: number): string {
  return spanMs > 2 * DAY_MS ? dayFormat.format(startMs) : utcTimeFormat.format(startMs);
}

/** "21 Nov, 10:00 to 10:30 UTC" */
export function formatSpan(fromMs: number, toMs: number): string {
  const format = toMs - fromMs < 60_000 ? secondFormat : utcTimeFormat;
  const [from, to] = [`${dayFormat.format(fromMs)}, ${format.format(fromMs)}`, format.format(toMs)];
  const isSameDay = Math.floor(fromMs / DAY_MS) === Math.floor(toMs / DAY_MS);
  return `${from} to ${isSameDay ? to : `${dayFormat.format(toMs)}, ${to}`} UTC`;
}
