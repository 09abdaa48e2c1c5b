import type { EventType } from '@runhook/contract';
import type { DeliveryStatus } from '../../api/types.ts';
import { EVENT_TYPES_IN_ORDER } from '../../words/webhooks.ts';

export const RANGES = ['all', 'hour', 'day', 'week', 'own'] as const;
export type Range = (typeof RANGES)[number];

export const RANGE_WORDS: Readonly<Record<Range, string>> = {
  all: 'Any time',
  hour: 'Last hour',
  day: 'Last 24 hours',
  week: 'Last 7 days',
  own: 'Own range…',
};

export const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'failed', 'cancelled'];

/** What the page's address says about the log. */
export interface LogAddress {
  status: DeliveryStatus | '';
  eventType: EventType | '';
  runId: string;
  range: Range;
  /** Of an own range: local times as `datetime-local` has them, or empty. */
  from: string;
  to: string;
  /** From 1. */
  page: number;
  /**
   * Microseconds as digits: later pages show what was there when the reader left the first one, so that nothing moves
   * from page to page. Empty on the first.
   */
  before: string;
}

const LOCAL_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/;
const RUN_ID_DIGITS_MAX = 15;

/** Reads the address; what makes no sense is as if it were not there. */
export function readLogAddress(search: URLSearchParams): LogAddress {
  const text = (name: string) => search.get(name) ?? '';
  const known = <T extends string>(name: string, values: readonly T[]) =>
    values.find((value) => value === text(name));
  const matching = (name: string, pattern: RegExp) => (pattern.test(text(name)) ? text(name) : '');
  const page = Number(matching('page', /^[1-9]\d{0,6}$/) || 1);
  return {
    status: known('status', STATUSES) ?? '',
    eventType: known('event', EVENT_TYPES_IN_ORDER) ?? '',
    runId: isRunId(text('run')) ? text('run') : '',
    range: known('range', RANGES) ?? 'all',
    from: matching('from', LOCAL_TIME),
    to: matching('to', LOCAL_TIME),
    page,
    before: page === 1 ? '' : matching('before', /^\d{1,18}$/),
  };
}

export function isRunId(text: string): boolean {
  return new RegExp(`^\\d{1,${RUN_ID_DIGITS_MAX}}$`).test(text);
}

/** The address, without what is as usual. */
export function writeLogAddress(address: LogAddress): URLSearchParams {
  const { status, eventType, runId, range, from, to, page, before } = address;
  const values: Record<string, string> = {
    status,
    event: eventType,
    run: runId,
    range: range === 'all' ? '' : range,
    from: range === 'own' ? from : '',
    to: range === 'own' ? to : '',
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
