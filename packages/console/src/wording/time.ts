const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Parses a time of the API: microseconds since the epoch as digits (webhooks and deliveries), or ISO 8601. Returns null for
 * other texts.
 */
export function parseTime(text: string): Date | null {
  const date = new Date(/^\d+$/.test(text) ? Math.floor(Number(text) / 1_000) : text);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** "just now", "4 min ago", "in 12 s", "3 h ago", "2 days ago"; null from 7 days on, which are shown as a date. */
export function formatRelativeTime(date: Date, nowMs: number): string | null {
  const differenceMs = date.getTime() - nowMs;
  const distanceMs = Math.abs(differenceMs);
  if (distanceMs >= 7 * DAY_MS) return null;
  if (differenceMs <= 0 && distanceMs < 10 * SECOND_MS) return 'just now';
  const distance = formatDistance(distanceMs);
  return differenceMs > 0 ? `in ${distance}` : `${distance} ago`;
}

function formatDistance(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.max(1, Math.floor(ms / SECOND_MS))} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  const days = Math.floor(ms / DAY_MS);
  return days === 1 ? '1 day' : `${days} days`;
}

const shortFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** Date and minute, in the user's time zone and language. */
export function formatShortLocalTime(date: Date): string {
  return shortFormat.format(date);
}

const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const dayFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const mediumFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** Time to the second: "14:03:07" today, "21 Nov, 14:03:07" in this year, otherwise with the year. */
export function formatExactLocalTime(date: Date, nowMs: number): string {
  const now = new Date(nowMs);
  if (date.toDateString() === now.toDateString()) return timeFormat.format(date);
  if (date.getFullYear() !== now.getFullYear()) return mediumFormat.format(date);
  return `${dayFormat.format(date)}, ${timeFormat.format(date)}`;
}

/** Date, second and zone, in the user's time zone and language. */
export function formatFullLocalTime(date: Date): string {
  return fullFormat.format(date);
}

/** `2026-01-31 19:28:07.123 UTC` */
export function formatUtcTime(date: Date): string {
  return `${date.toISOString().slice(0, -1).replace('T', ' ')} UTC`;
}

/** "84 ms", "1.2 s", "10 s", "3 min 20 s". */
export function formatDuration(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND_MS) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  const seconds = Math.floor((ms % MINUTE_MS) / SECOND_MS);
  const minutes = Math.floor(ms / MINUTE_MS);
  return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
}

/** "40 seconds", "1 minute", "15 minutes": a wait, rounded up so that it is never too short. */
export function formatWait(seconds: number): string {
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}
