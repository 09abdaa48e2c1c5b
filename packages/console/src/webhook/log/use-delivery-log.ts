import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { type DeliveriesQuery, fetchDeliveries, logKey } from '../../api/deliveries.ts';
import { pollUnlessLive } from '../../api/live.ts';
import type { WebhookKey } from '../../api/subscriptions.ts';
import type { Delivery } from '../../api/types.ts';
import { findNewIds, type LogState, mergeTail, selectVisibleRows, tailSince } from './live-log.ts';
import {
  hasFilters,
  type LogAddress,
  PAGE_SIZE,
  timeWindow,
  toMicros,
  writeLogAddress,
} from './log-address.ts';

interface ShownLog {
  /** URL parameters for which these rows were read. */
  view: string;
  rows: Delivery[];
  totalCount: number;
  arrivedCount: number;
  waitingCount: number;
  /** Ids of the rows that the latest refresh with new rows added. */
  newIds: ReadonlySet<string>;
}

const NO_IDS: ReadonlySet<string> = new Set();

export interface DeliveryLog {
  /** Null until the first read. */
  shown: ShownLog | null;
  /** Number of new deliveries that this page does not show: its filters exclude them, or it is a later page. */
  hiddenCount: number;
  /** Number of all deliveries that arrived since the page was opened. */
  newCount: number;
  error: Error | null;
  isFetching: boolean;
  /** The browser is offline: no requests are made until it is online. */
  isOffline: boolean;
  /** Whether rows of the previous page or filters are shown while the new ones are loading. */
  isStale: boolean;
  retry(): void;
  /** Shows the waiting deliveries. */
  showWaiting(): void;
}

/** @param isReading whether the rows must not move, because the user is reading them */
export function useDeliveryLog(
  key: WebhookKey,
  address: LogAddress,
  isReading: RefObject<() => boolean>,
): DeliveryLog {
  const view = writeLogAddress(address).toString();
  const log = useQuery(logQuery(key, address));
  const newDeliveries = useQuery(newCountQuery(key, address));
  const [shown, setShown] = useState<ShownLog | null>(null);
  const shownRef = useRef<ShownLog | null>(null);

  const show = useCallback(
    (latest: LogState, isAtTop: boolean) => {
      const previous = shownRef.current?.view === view ? shownRef.current : null;
      shownRef.current = { ...nextShown(previous, latest, isAtTop || address.page > 1), view };
      setShown(shownRef.current);
    },
    [view, address.page],
  );
  const latest = log.isPlaceholderData ? undefined : log.data;
  useEffect(() => {
    if (latest) show(latest, !isReading.current());
  }, [latest, show, isReading]);

  const receivedCount = newDeliveries.data ? newDeliveries.data.count - newDeliveries.data.firstCount : 0;
  const arrivedCount = latest?.arrivedCount ?? 0;
  return {
    shown,
    hiddenCount: Math.max(0, receivedCount - arrivedCount),
    newCount: Math.max(receivedCount, arrivedCount),
    error: log.error,
    isFetching: log.isFetching,
    isOffline: log.fetchStatus === 'paused',
    isStale: shown !== null && shown.view !== view,
    retry: () => void log.refetch(),
    showWaiting: () => latest && show(latest, true),
  };
}

function nextShown(previous: ShownLog | null, latest: LogState, isAtTop: boolean): Omit<ShownLog, 'view'> {
  const { rows, waitingCount } = selectVisibleRows(
    previous?.rows ?? null,
    {
      latest: latest.rows,
      latestCount: latest.arrivedCount,
      shownCount: previous?.arrivedCount ?? latest.arrivedCount,
    },
    isAtTop,
  );
  const isPaused = waitingCount > 0 && previous !== null;
  const newIds = previous === null ? NO_IDS : findNewIds(previous.rows, rows);
  return {
    rows,
    waitingCount,
    totalCount: isPaused ? previous.totalCount : latest.totalCount,
    arrivedCount: isPaused ? previous.arrivedCount : latest.arrivedCount,
    newIds: newIds.size > 0 ? newIds : (previous?.newIds ?? NO_IDS),
  };
}

const pollLog = pollUnlessLive(2_000);
/** Interval of full reads: counting a large log on every read would be too expensive. */
const FULL_READ_INTERVAL_MS = 30_000;
/** Poll interval of later pages, which poll only while they have pending rows; others change only if resent. */
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
      const previous = client.getQueryData<LogState>(queryKey);
      if (previous && isFirst) {
        const continued = await readTail(key, address, previous, signal);
        if (continued) return continued;
      }
      const page = await fetchDeliveries(key, pageRequest(address), signal);
      const arrivedCount = previous
        ? previous.arrivedCount + Math.max(0, page.totalCount - previous.totalCount)
        : 0;
      return { ...page, arrivedCount, fullReadAtMs: Date.now() };
    },
    placeholderData: keepPreviousData,
    staleTime: isFirst ? 5_000 : 60_000,
    meta: { isStatic: !isFirst },
    refetchInterval: ({ state }) => {
      if (isFirst) return pollLog({ state });
      return state.data?.rows.some(({ status }) => status === 'pending') ? PENDING_POLL_MS : false;
    },
  });
}

async function readTail(
  key: WebhookKey,
  address: LogAddress,
  previous: LogState,
  signal: AbortSignal,
): Promise<LogState | null> {
  if (previous.rows.length === 0 || Date.now() - previous.fullReadAtMs > FULL_READ_INTERVAL_MS) return null;
  const request = pageRequest(address);
  const tail = await fetchDeliveries(
    key,
    { ...request, since: tailSince(previous.rows, request.since) },
    signal,
  );
  return mergeTail(previous, tail, PAGE_SIZE);
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

/** Returns the earlier of two upper ends of a time range; an empty text means no end. */
function earlier(one: string, other: string): string {
  if (one === '' || other === '') return one || other;
  return BigInt(one) < BigInt(other) ? one : other;
}

/** Number of deliveries since `since`, regardless of filters: at the first read (0 for later pages), and now. */
interface NewDeliveryCount {
  since: string;
  firstCount: number;
  count: number;
}

/** Tolerance for the difference between the clocks of the user and the server. */
const CLOCK_SKEW_MAX_MS = 10 * 60_000;

/** Counts new deliveries for pages that do not show them: those with filters, and later ones. */
function newCountQuery(key: WebhookKey, address: LogAddress) {
  return queryOptions({
    queryKey: [...logKey(key), 'new-count', address],
    enabled: hasFilters(address) || address.page > 1,
    queryFn: async ({ signal, client, queryKey }): Promise<NewDeliveryCount> => {
      const previous = client.getQueryData<NewDeliveryCount>(queryKey);
      const anchor = address.before === '' ? toMicros(Date.now() - CLOCK_SKEW_MAX_MS) : address.before;
      const since = previous?.since ?? anchor;
      const { totalCount } = await fetchDeliveries(key, { since, limit: 1 }, signal);
      const firstCount = previous?.firstCount ?? (address.before === '' ? totalCount : 0);
      return { since, firstCount, count: totalCount };
    },
    gcTime: 0,
    refetchInterval: pollLog,
  });
}
