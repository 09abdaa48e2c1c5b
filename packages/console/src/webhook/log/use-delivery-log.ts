import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { type DeliveriesQuery, fetchDeliveries, logKey } from '../../api/deliveries.ts';
import { unlessLive } from '../../api/live.ts';
import type { WebhookKey } from '../../api/subscriptions.ts';
import type { Delivery } from '../../api/types.ts';
import { arrivedIds, continuedLog, type LogState, liveRows, tailSince } from './live-log.ts';
import {
  hasFilters,
  type LogAddress,
  microsOf,
  PAGE_SIZE,
  timeWindow,
  writeLogAddress,
} from './log-address.ts';

interface Shown {
  /** URL parameters for which it was read. */
  view: string;
  rows: Delivery[];
  totalCount: number;
  arrivedCount: number;
  waitingCount: number;
  /** The deliveries that arrived last while the page was open. */
  arrived: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

export interface DeliveryLog {
  /** Null until the first read. */
  shown: Shown | null;
  /** Number of new deliveries that this page does not show: its filters exclude them, or it is a later page. */
  elsewhereCount: number;
  /** Number of all deliveries that arrived since the page was opened. */
  newCount: number;
  error: Error | null;
  isFetching: boolean;
  /** The browser is offline: no requests are made until it is online. */
  isOffline: boolean;
  /** Whether rows of the previous page are shown while its own are loading. */
  isBehind: boolean;
  retry(): void;
  /** Shows the waiting deliveries. */
  showWaiting(): void;
}

/** @param holdsPlace whether the rows must not move, because the user is reading them */
export function useDeliveryLog(
  key: WebhookKey,
  address: LogAddress,
  holdsPlace: RefObject<() => boolean>,
): DeliveryLog {
  const view = writeLogAddress(address).toString();
  const log = useQuery(logQuery(key, address));
  const news = useQuery(newsQuery(key, address));
  const [shown, setShown] = useState<Shown | null>(null);
  const shownNow = useRef<Shown | null>(null);

  const show = useCallback(
    (latest: LogState, isAtTop: boolean) => {
      const before = shownNow.current?.view === view ? shownNow.current : null;
      shownNow.current = { ...shownAfter(before, latest, isAtTop || address.page > 1), view };
      setShown(shownNow.current);
    },
    [view, address.page],
  );
  const latest = log.isPlaceholderData ? undefined : log.data;
  useEffect(() => {
    if (latest) show(latest, !holdsPlace.current());
  }, [latest, show, holdsPlace]);

  const newsCount = news.data ? news.data.count - news.data.firstCount : 0;
  const arrivedCount = latest?.arrivedCount ?? 0;
  return {
    shown,
    elsewhereCount: Math.max(0, newsCount - arrivedCount),
    newCount: Math.max(newsCount, arrivedCount),
    error: log.error,
    isFetching: log.isFetching,
    isOffline: log.fetchStatus === 'paused',
    isBehind: shown !== null && shown.view !== view,
    retry: () => void log.refetch(),
    showWaiting: () => latest && show(latest, true),
  };
}

function shownAfter(before: Shown | null, latest: LogState, isAtTop: boolean): Omit<Shown, 'view'> {
  const { rows, waitingCount } = liveRows(
    before?.rows ?? null,
    {
      latest: latest.rows,
      latestCount: latest.arrivedCount,
      shownCount: before?.arrivedCount ?? latest.arrivedCount,
    },
    isAtTop,
  );
  const isHeld = waitingCount > 0 && before !== null;
  const cameNow = before === null ? NONE : arrivedIds(before.rows, rows);
  return {
    rows,
    waitingCount,
    totalCount: isHeld ? before.totalCount : latest.totalCount,
    arrivedCount: isHeld ? before.arrivedCount : latest.arrivedCount,
    arrived: cameNow.size > 0 ? cameNow : (before?.arrived ?? NONE),
  };
}

const pollLog = unlessLive(2_000);
/** Interval of full reads: counting a large log on every read would be too expensive. */
const WHOLE_AGAIN_MS = 30_000;
/** Later pages poll only while they have pending rows; other rows do not change. */
const PENDING_POLL_MS = 5_000;

/**
 * The page of the log for the URL. The first page is refreshed with every change, or by polling while no changes are
 * received; a refresh reads from the oldest row on, and at intervals the whole page.
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
    staleTime: isFirst ? 5_000 : 60_000,
    meta: { isStill: !isFirst },
    refetchInterval: ({ state }) => {
      if (isFirst) return pollLog({ state });
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

/** Returns the earlier of two ends of a range, either of which may be open. */
function earlier(one: string, other: string): string {
  if (one === '' || other === '') return one || other;
  return BigInt(one) < BigInt(other) ? one : other;
}

/** Number of deliveries since the page was opened, regardless of filters. */
interface News {
  since: string;
  firstCount: number;
  count: number;
}

/** Tolerance for the difference between the clocks of the user and the server. */
const CLOCKS_APART_MS = 10 * 60_000;

/** Counts new deliveries for pages that do not show them: those with filters, and later ones. */
function newsQuery(key: WebhookKey, address: LogAddress) {
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
    refetchInterval: pollLog,
  });
}
