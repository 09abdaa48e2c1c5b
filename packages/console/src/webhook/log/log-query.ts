import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { type DeliveriesQuery, fetchDeliveries, logKey } from '../../api/deliveries.ts';
import type { WebhookKey } from '../../api/subscriptions.ts';
import { hasFilters, type LogAddress } from './log-address.ts';
import { PAGE_SIZE } from './log-pages.ts';
import { continuedLog, type LogState, tailSince } from './log-state.ts';
import { microsOf, timeWindow } from './time-window.ts';

const POLL_MS = 2_000;
/** Counting a large log each time would cost the server more than the page is worth. */
const WHOLE_AGAIN_MS = 30_000;
/** Rows of later pages change no more, but for those that wait. */
const PENDING_POLL_MS = 5_000;

/**
 * The page of the log that the address names. The first one is read again and again while the tab is visible: from its
 * oldest row on, and as a whole now and then.
 */
export function logQuery(key: WebhookKey, address: LogAddress) {
  const isFirst = address.page === 1;
  return queryOptions({
    queryKey: [...logKey(key), 'page', address],
    queryFn: async ({ signal, client, queryKey }): Promise<LogState> => {
      const before = client.getQueryData<LogState>(queryKey);
      if (before && isFirst) {
        const continued = await continueLog(key, address, before, signal);
        if (continued) return continued;
      }
      const page = await fetchDeliveries(key, pageRequest(address), signal);
      const arrivedCount = before
        ? before.arrivedCount + Math.max(0, page.totalCount - before.totalCount)
        : 0;
      return { ...page, arrivedCount, wholeAtMs: Date.now() };
    },
    placeholderData: keepPreviousData,
    staleTime: isFirst ? 0 : 60_000,
    refetchInterval: ({ state }) => {
      if (isFirst) return POLL_MS;
      return state.data?.rows.some(({ status }) => status === 'pending') ? PENDING_POLL_MS : false;
    },
  });
}

async function continueLog(
  key: WebhookKey,
  address: LogAddress,
  before: LogState,
  signal: AbortSignal,
): Promise<LogState | null> {
  if (before.rows.length === 0 || Date.now() - before.wholeAtMs > WHOLE_AGAIN_MS) return null;
  const whole = pageRequest(address);
  const tail = await fetchDeliveries(key, { ...whole, since: tailSince(before.rows, whole.since) }, signal);
  return continuedLog(before, tail, PAGE_SIZE);
}

function pageRequest(address: LogAddress) {
  const { since, until } = timeWindow(address, Date.now());
  return {
    status: address.status,
    event_type: address.eventType,
    run_id: address.runId === '' ? '' : Number(address.runId),
    since,
    until: earlier(until, address.before),
    limit: PAGE_SIZE,
    offset: (address.page - 1) * PAGE_SIZE,
  } satisfies DeliveriesQuery;
}

/** Of two ends of a window, of which either may be open. */
function earlier(one: string, other: string): string {
  if (one === '' || other === '') return one || other;
  return BigInt(one) < BigInt(other) ? one : other;
}

/** How many came since the page was opened, whatever its filters. */
export interface News {
  since: string;
  firstCount: number;
  count: number;
}

/** As far back as the clocks of the reader and of the server may differ. */
const CLOCKS_APART_MS = 10 * 60_000;

/** For a page that does not show what is new by itself: one with filters, and every later one. */
export function newsQuery(key: WebhookKey, address: LogAddress) {
  return queryOptions({
    queryKey: [...logKey(key), 'news', address],
    enabled: hasFilters(address) || address.page > 1,
    queryFn: async ({ signal, client, queryKey }): Promise<News> => {
      const before = client.getQueryData<News>(queryKey);
      const anchor = address.before === '' ? microsOf(Date.now() - CLOCKS_APART_MS) : address.before;
      const since = before?.since ?? anchor;
      const { totalCount } = await fetchDeliveries(key, { since, limit: 1 }, signal);
      const firstCount = before?.firstCount ?? (address.before === '' ? totalCount : 0);
      return { since, firstCount, count: totalCount };
    },
    gcTime: 0,
    refetchInterval: POLL_MS,
  });
}
