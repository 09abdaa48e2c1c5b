import type { LogAddress } from './log-address.ts';

const HOUR_MS = 3_600_000;
const LENGTHS_MS = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS } as const;

/** Microseconds since the epoch, as digits; empty is open. */
export interface TimeWindow {
  since: string;
  until: string;
}

/** What the chosen range comes to now. */
export function timeWindow(
  { range, from, to }: Pick<LogAddress, 'range' | 'from' | 'to'>,
  nowMs: number,
): TimeWindow {
  if (range === 'all') return { since: '', until: '' };
  if (range === 'own') return { since: microsOfLocal(from), until: microsOfLocal(to) };
  return { since: microsOf(nowMs - LENGTHS_MS[range]), until: '' };
}

/** Of the text that a `datetime-local` field has, in the reader's zone; empty when it is no time. */
export function microsOfLocal(text: string): string {
  const timeMs = text === '' ? Number.NaN : new Date(text).getTime();
  return Number.isNaN(timeMs) || timeMs < 0 ? '' : microsOf(timeMs);
}

/** The text of a `datetime-local` field, to the minute, in the reader's zone. */
export function localOf(timeMs: number): string {
  const date = new Date(timeMs);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function microsOf(timeMs: number): string {
  return String(Math.floor(timeMs) * 1_000);
}

/** The microsecond after it: a window ends before its `until`. */
export function justAfter(micros: string): string {
  return String(BigInt(micros) + 1n);
}

/** What is wrong with an own range, in words; null when it can be asked for. */
export function windowProblem({ since, until }: TimeWindow): string | null {
  if (since === '' || until === '') return null;
  return BigInt(until) > BigInt(since) ? null : 'The end must be later than the beginning.';
}
