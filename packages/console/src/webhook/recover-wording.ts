import type { Recovery, RecoveryPreview } from '../api/types.ts';
import { formatShortLocalTime, parseTime } from '../wording/time.ts';
import { localToMicros, type TimeWindow, toLocalText, toMicros, windowProblem } from './log/log-address.ts';

export interface WindowInput {
  /** Local times as in a `datetime-local` field. */
  from: string;
  to: string;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Returns the time in which the webhook was off, in whole minutes, or the last hour. @param missed undefined if unknown */
export function initialWindow(
  missed: Pick<RecoveryPreview, 'since' | 'until'> | undefined,
  openedMs: number,
): WindowInput {
  const since = parseTime(missed?.since ?? '');
  if (since === null) return { from: toLocalText(openedMs - HOUR_MS), to: '' };
  const untilMs = parseTime(missed?.until ?? '')?.getTime() ?? openedMs;
  const to = untilMs >= openedMs - MINUTE_MS ? '' : toLocalText(untilMs + MINUTE_MS - 1);
  return { from: toLocalText(since.getTime()), to };
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
