import type { Recovery } from '../api/types.ts';
import { formatShortLocalTime, parseTime } from '../wording/time.ts';
import { formatCount, localToMicros, type TimeWindow, toMicros, windowProblem } from './log/log-address.ts';

interface WindowInput {
  /** Local times as in a `datetime-local` field. */
  from: string;
  to: string;
}

/** Returns the time range. @param openedMs end of the range if `to` is empty */
export function toTimeWindow({ from, to }: WindowInput, openedMs: number): TimeWindow {
  return { since: localToMicros(from), until: to === '' ? toMicros(openedMs) : localToMicros(to) };
}

/** Returns why the range cannot be recovered; null if it can. */
export function findWindowProblem({ from, to }: WindowInput, window: TimeWindow): string | null {
  if (window.since === '')
    return from === '' ? 'Enter a start time.' : 'The start is not a valid date and time.';
  if (window.until === '' && to !== '') return 'The end is not a valid date and time.';
  return windowProblem(window);
}

/** "214 failed deliveries will be resent." */
export function describeMatchCount(
  count: number | undefined,
  status: 'failed' | 'cancelled',
  problem: string | null,
): string {
  if (problem !== null) return `The deliveries could not be counted. ${problem}`;
  if (count === undefined) return 'Counting…';
  if (count === 0) return `No ${status} deliveries in this time range. There is nothing to resend.`;
  if (count === 1) return `1 ${status} delivery will be resent.`;
  const countText = formatCount(count);
  return `${countText.charAt(0).toUpperCase()}${countText.slice(1)} ${status} deliveries will be resent.`;
}

type Progress = Pick<Recovery, 'status' | 'reason' | 'total_count' | 'recovered_count'>;

/**
 * Describes the progress of a recovery. Deliveries that others have resent meanwhile are in `total_count`, but not in
 * `recovered_count`.
 */
export function describeProgress({ status, reason, total_count, recovered_count }: Progress): string {
  const recovered = recovered_count.toLocaleString();
  const total = total_count.toLocaleString();
  if (status === 'running') return `${recovered} of ${total} queued again so far.`;
  if (status === 'cancelled') return `Stopped after ${recovered} of ${total}. ${reason ?? ''}`.trim();
  if (total_count === 0) return 'There was nothing to resend.';
  const others = total_count - recovered_count;
  const rest = others > 0 ? ` The other ${others.toLocaleString()} had already been resent.` : '';
  return `Done: ${recovered} of ${total} queued again.${rest}`;
}

/** "40 of 214" */
export function formatShare({ recovered_count, total_count }: Progress): string {
  return `${recovered_count.toLocaleString()} of ${total_count.toLocaleString()}`;
}

/** Describes the outcome of the resent deliveries; empty if there are none. */
export function formatOutcome({ delivered, failed, cancelled, pending }: Recovery['outcome']): string {
  const parts = [
    [delivered, 'delivered'],
    [failed, 'failed again'],
    [cancelled, 'cancelled'],
    [pending, 'pending'],
  ] as const;
  const nonZero = parts.filter(([count]) => count > 0);
  if (nonZero.length === 0) return '';
  return `${nonZero.map(([count, label]) => `${count.toLocaleString()} ${label}`).join(', ')}.`;
}

/** "failed, created from 31 Jan 2026, 10:00 to 31 Jan 2026, 11:00", or "unsent events, recorded from …" */
export function describeWindow({
  since,
  until,
  delivery_status,
  include,
}: Pick<Recovery, 'since' | 'until' | 'delivery_status' | 'include'>): string {
  const time = (text: string) => {
    const date = parseTime(text);
    return date === null ? text : formatShortLocalTime(date);
  };
  const range = `from ${time(since)} to ${time(until)}`;
  return delivery_status === null
    ? `${include} events, recorded ${range}`
    : `${delivery_status}, created ${range}`;
}
