import { useQuery } from '@tanstack/react-query';
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import type { WebhookKey } from '../../api/subscriptions.ts';
import type { Delivery } from '../../api/types.ts';
import { arrivedIds, liveRows } from './live-rows.ts';
import { type LogAddress, writeLogAddress } from './log-address.ts';
import { logQuery, newsQuery } from './log-query.ts';
import type { LogState } from './log-state.ts';

interface Shown {
  /** The address it was read for. */
  view: string;
  rows: Delivery[];
  totalCount: number;
  arrivedCount: number;
  waitingCount: number;
  /** Those that came last while the page was open. */
  arrived: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

export interface DeliveryLog {
  /** Null until the log was read for the first time. */
  shown: Shown | null;
  /** Newer ones that do not come onto this page by themselves: filters exclude them, or it is a later page. */
  elsewhereCount: number;
  /** How many have come in all since the page was opened, wherever they are. */
  newCount: number;
  error: Error | null;
  isFetching: boolean;
  /** Shows another page's rows while its own are read. */
  isBehind: boolean;
  retry(): void;
  /** Lets in those that wait. */
  showWaiting(): void;
}

/** @param holdsPlace whether the reader is in the middle of the rows, which then must not move */
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
