import type { EventType } from '@runhook/contract';
import { type DeliveryStatus, isCountCapped } from '../../api/types.ts';
import { EVENT_TYPES_IN_ORDER } from '../../wording/webhooks.ts';

export const RANGES = ['all', 'hour', 'day', 'week', 'custom'] as const;
type Range = (typeof RANGES)[number];

export const RANGE_LABELS: Readonly<Record<Range, string>> = {
  all: 'Any time',
  hour: 'Last hour',
  day: 'Last 24 hours',
  week: 'Last 7 days',
  custom: 'Custom range',
};

export const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'failed', 'cancelled'];

/** Filters and page of the log in the URL. */
export interface LogAddress {
  status: DeliveryStatus | '';
  eventType: EventType | '';
  runId: string;
  range: Range;
  /**
   * Start of a custom range: a local time as in a `datetime-local` field, or empty. The URL contains UTC, because users share
   * it.
   */
  from: string;
  to: string;
  /** Page number, from 1. */
  page: number;
  /**
   * Later pages show deliveries before this time, 1 µs after the newest row when the user left the first page, so that rows
   * do not move between pages. Microseconds as digits; empty on the first page.
   */
  before: string;
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?Z$/;
const RUN_ID_DIGITS_MAX = 15;

/** Parses the URL. Invalid values are ignored. */
export function readLogAddress(search: URLSearchParams): LogAddress {
  const text = (name: string) => search.get(name) ?? '';
  const oneOf = <T extends string>(name: string, values: readonly T[]) =>
    values.find((value) => value === text(name));
  const matching = (name: string, pattern: RegExp) => (pattern.test(text(name)) ? text(name) : '');
  const page = Number(matching('page', /^[1-9]\d{0,6}$/) || 1);
  return {
    status: oneOf('status', STATUSES) ?? '',
    eventType: oneOf('event', EVENT_TYPES_IN_ORDER) ?? '',
    runId: isRunId(text('run')) ? text('run') : '',
    range: oneOf('range', RANGES) ?? 'all',
    from: utcToLocal(matching('from', TIME)),
    to: utcToLocal(matching('to', TIME)),
    page,
    before: page === 1 ? '' : matching('before', /^\d{1,18}$/),
  };
}

export function isRunId(text: string): boolean {
  return new RegExp(`^\\d{1,${RUN_ID_DIGITS_MAX}}$`).test(text);
}

/** Serializes the values that differ from their defaults. */
export function writeLogAddress(address: LogAddress): URLSearchParams {
  const { status, eventType, runId, range, from, to, page, before } = address;
  const values: Record<string, string> = {
    status,
    event: eventType,
    run: runId,
    range: range === 'all' ? '' : range,
    from: range === 'custom' ? localToUtc(from) : '',
    to: range === 'custom' ? localToUtc(to) : '',
    page: page === 1 ? '' : String(page),
    before: page === 1 ? '' : before,
  };
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''));
}

export function hasFilters({ status, eventType, runId, range }: LogAddress): boolean {
  return status !== '' || eventType !== '' || runId !== '' || range !== 'all';
}

export const NO_FILTERS: LogAddress = {
  status: '',
  eventType: '',
  runId: '',
  range: 'all',
  from: '',
  to: '',
  page: 1,
  before: '',
};

const HOUR_MS = 3_600_000;
const LENGTHS_MS = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS } as const;

/** Returns the URL state of the log of one hour. @param hourStart microseconds since the epoch, as digits */
export function hourAddress(hourStart: string): LogAddress {
  const startMs = Math.floor(Number(hourStart) / 1_000);
  return { ...NO_FILTERS, range: 'custom', from: toLocalText(startMs), to: toLocalText(startMs + HOUR_MS) };
}

/** Microseconds since the epoch, as digits; empty if the range is open at that end. */
export interface TimeWindow {
  since: string;
  until: string;
}

/** Returns the time range of the filters, relative to `nowMs`. */
export function timeWindow(
  { range, from, to }: Pick<LogAddress, 'range' | 'from' | 'to'>,
  nowMs: number,
): TimeWindow {
  if (range === 'all') return { since: '', until: '' };
  if (range === 'custom') return { since: localToMicros(from), until: localToMicros(to) };
  return { since: toMicros(nowMs - LENGTHS_MS[range]), until: '' };
}

/** Parses the text of a `datetime-local` field in the user's time zone; returns an empty string for an invalid time. */
export function localToMicros(text: string): string {
  const timeMs = text === '' ? Number.NaN : new Date(text).getTime();
  return Number.isNaN(timeMs) || timeMs < 0 ? '' : toMicros(timeMs);
}

/** Returns the text of a `datetime-local` field, to the minute, in the user's time zone. */
export function toLocalText(timeMs: number): string {
  return withoutSeconds(localText(new Date(timeMs)));
}

function localText(date: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const withoutSeconds = (text: string) => text.slice(0, 'YYYY-MM-DDTHH:MM'.length);
/** Omits the seconds if they are 0, like the value of a `datetime-local` field. */
const shortest = (text: string) => (text.endsWith(':00') ? withoutSeconds(text) : text);

/** Converts the text of a field to the UTC time of the URL; returns an empty string for an invalid time. */
function localToUtc(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime())
    ? ''
    : `${shortest(date.toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length))}Z`;
}

function utcToLocal(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? '' : shortest(localText(date));
}

export function toMicros(timeMs: number): string {
  return String(Math.floor(timeMs) * 1_000);
}

/** Returns the next microsecond, because a range excludes its `until`. */
export function nextMicrosecond(micros: string): string {
  return String(BigInt(micros) + 1n);
}

/** Returns the problem of a custom range; null if it is valid. */
export function windowProblem({ since, until }: TimeWindow): string | null {
  if (since === '' || until === '') return null;
  return BigInt(until) > BigInt(since) ? null : 'The end must be later than the start.';
}

export const PAGE_SIZE = 25;

/** Returns the number of pages that can be opened, which the API's limit of the count bounds. */
export function countPages(totalCount: number): number {
  return Math.max(1, Math.ceil(totalCount / PAGE_SIZE));
}

const numberFormat = new Intl.NumberFormat();

export function formatCount(count: number): string {
  const text = numberFormat.format(count);
  return isCountCapped(count) ? `at least ${text}` : text;
}

/** "26–50 of 1,234", "1–25 of at least 1,000,000". */
export function formatExtent({
  page,
  count,
  totalCount,
}: {
  page: number;
  count: number;
  totalCount: number;
}): string {
  const first = (page - 1) * PAGE_SIZE + 1;
  return `${numberFormat.format(first)}–${numberFormat.format(first + count - 1)} of ${formatCount(totalCount)}`;
}

/** Parses a page number and clamps it to the existing pages; returns null for other texts. */
export function pageFromText(text: string, totalCount: number): number | null {
  if (!/^\d{1,9}$/.test(text.trim())) return null;
  return Math.min(Math.max(1, Number(text)), countPages(totalCount));
}
