import type { EventType } from '@runhook/contract';
import type { DeliveryStatus } from '../api/types.ts';
import { EVENT_TYPES_IN_ORDER } from '../wording/webhooks.ts';
import { readUtc, utcMs, utcText } from './utc.ts';

/** Filters in the URL of the page; an empty string means any. Times are absolute, in UTC (`…Z`). */
export interface EventsAddress {
  from: string;
  /** End of the range; empty means now. */
  to: string;
  status: DeliveryStatus | '';
  event: EventType | '';
  webhook: string;
  job: string;
  run: string;
  eventId: string;
  /** HTTP status of the latest attempt. */
  code: string;
  /** Error code of the latest attempt. */
  error: string;
  /** Minimum duration of the latest attempt in milliseconds; `faster` is the maximum. */
  slower: string;
  faster: string;
}

export const STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'failed', 'cancelled'];

const HOUR_MS = 3_600_000;

/** Ranges that the user can select with one click. */
export const PRESETS = [
  { label: '1 h', description: 'the last hour', ms: HOUR_MS },
  { label: '6 h', description: 'the last 6 hours', ms: 6 * HOUR_MS },
  { label: '24 h', description: 'the last 24 hours', ms: 24 * HOUR_MS },
  { label: '7 d', description: 'the last 7 days', ms: 7 * 24 * HOUR_MS },
  { label: '30 d', description: 'the last 30 days', ms: 30 * 24 * HOUR_MS },
] as const;

const PATTERNS: Partial<Record<keyof EventsAddress, RegExp>> = {
  webhook: /^wsu_[0-9A-Za-z]{27}$/,
  job: /^\d{1,15}$/,
  run: /^\d{1,15}$/,
  eventId: /^wev_[0-9A-Za-z]{27}$/,
  code: /^\d{1,3}$/,
  error: /^[a-z_]{1,64}$/,
  slower: /^\d{1,7}$/,
  faster: /^\d{1,7}$/,
};

/** Whether a filter accepts the text. An empty text is accepted and filters nothing. */
export function isFilter(name: keyof EventsAddress, text: string): boolean {
  return text === '' || (PATTERNS[name]?.test(text) ?? true);
}

/** Parses the URL. Invalid values are ignored. */
export function readEventsAddress(parameters: URLSearchParams): EventsAddress {
  const text = (name: keyof EventsAddress) => {
    const value = parameters.get(name) ?? '';
    return isFilter(name, value) ? value : '';
  };
  return {
    from: readUtc(parameters.get('from') ?? ''),
    to: readUtc(parameters.get('to') ?? ''),
    status: STATUSES.find((status) => status === text('status')) ?? '',
    event: EVENT_TYPES_IN_ORDER.find((type) => type === text('event')) ?? '',
    webhook: text('webhook'),
    job: text('job'),
    run: text('run'),
    eventId: text('eventId'),
    code: text('code'),
    error: text('error'),
    slower: text('slower'),
    faster: text('faster'),
  };
}

/** Serializes the filters that are set. Colons are not escaped, so that users can read the times. */
export function writeEventsAddress(address: EventsAddress): string {
  const entries = Object.entries(address).filter(([, value]) => value !== '');
  return new URLSearchParams(entries).toString().replaceAll('%3A', ':');
}

/** Returns a range that ends now and starts `ms` ago, rounded down to the minute. */
export function windowUntilNow(ms: number, nowMs: number): Pick<EventsAddress, 'from' | 'to'> {
  return { from: utcText(Math.floor((nowMs - ms) / 60_000) * 60_000), to: '' };
}

export function hasEventFilters({ from, to, ...filters }: EventsAddress): boolean {
  return Object.values(filters).some((value) => value !== '');
}

export const NO_EVENT_FILTERS = {
  status: '',
  event: '',
  webhook: '',
  job: '',
  run: '',
  eventId: '',
  code: '',
  error: '',
  slower: '',
  faster: '',
} as const satisfies Partial<EventsAddress>;

export type EventsQuery = NonNullable<ReturnType<typeof toEventsQuery>>;

/** Returns the query of the API; null if the range does not end after its start. */
export function toEventsQuery(address: EventsAddress) {
  const { from, to } = address;
  if (from !== '' && to !== '' && utcMs(to) <= utcMs(from)) return null;
  const number = (text: string) => (text === '' ? '' : Number(text));
  return {
    since: from,
    until: to,
    status: address.status,
    event_type: address.event,
    subscription_id: address.webhook,
    job_id: number(address.job),
    run_id: number(address.run),
    event_id: address.eventId,
    http_status_code: number(address.code),
    error_code: address.error,
    duration_min_ms: number(address.slower),
    duration_max_ms: number(address.faster),
  } as const;
}
