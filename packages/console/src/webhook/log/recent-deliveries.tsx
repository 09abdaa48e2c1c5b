import { Box, Group, Paper, Skeleton, Stack, Text, Title, VisuallyHidden } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';
import { useSearchParams } from 'react-router';
import type { WebhookKey } from '../../api/subscriptions.ts';
import type { Delivery } from '../../api/types.ts';
import { DeferredRender, Problem, useIsNarrow } from '../../components/page.tsx';
import { useRequestedAddress } from '../../components/requested-address.ts';
import classes from './delivery-rows.module.css';
import { DeliveryCards, DeliveryTable } from './delivery-rows.tsx';
import {
  hasFilters,
  type LogAddress,
  NO_FILTERS,
  nextMicrosecond,
  readLogAddress,
  timeWindow,
  windowProblem,
  writeLogAddress,
} from './log-address.ts';
import { LogFilters } from './log-filters.tsx';
import { LogPager } from './log-pager.tsx';
import { LogUpdates, WaitingButton } from './log-updates.tsx';
import { type DeliveryLog, useDeliveryLog } from './use-delivery-log.ts';

export const LOG_HEADING_ID = 'recent-deliveries';
const HEADER_PX = 56;
const TABLE_MIN_EM = 62;

interface RecentDeliveriesProps {
  webhook: WebhookKey;
  actions: ReactNode;
  /** Shown instead of a log without any delivery. */
  emptyContent: ReactNode;
}

/** The live log of a webhook. Its filters and page are in the URL. */
export function RecentDeliveries({ webhook, actions, emptyContent }: RecentDeliveriesProps) {
  const [search, setSearch] = useSearchParams();
  const { address, requested } = useRequestedAddress(search, readLogAddress);
  const list = useRef<HTMLDivElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const isReadingRef = useRef(() => isScrolledOrFocused(list.current));
  const log = useDeliveryLog(webhook, address, isReadingRef);
  const go = (to: LogAddress, replace = false) => {
    requested.current = to;
    setSearch(writeLogAddress(to), { replace, preventScrollReset: true });
  };
  useFocusAfterPaging(heading, address.page);

  const isEmpty = log.shown?.rows.length === 0 && !log.isStale && log.error === null;
  const showsFirstSteps = isEmpty && address.page === 1 && !hasFilters(address);
  return (
    <Paper component="section" withBorder p="md" aria-labelledby={LOG_HEADING_ID}>
      <Group justify="space-between" mb="sm" gap="xs">
        <Title
          order={2}
          size="h4"
          id={LOG_HEADING_ID}
          ref={heading}
          tabIndex={-1}
          className={classes.heading ?? ''}
        >
          Recent Deliveries
        </Title>
        <Group gap="xs">{actions}</Group>
      </Group>
      {showsFirstSteps ? (
        emptyContent
      ) : (
        <Stack gap="sm">
          <LogFilters address={address} onChange={(part) => go({ ...requested.current, ...part }, true)} />
          <LogUpdates log={log} isFirstPage={address.page === 1} onShowNewest={() => go({ ...NO_FILTERS })} />
          <WaitingButton
            count={log.shown?.waitingCount ?? 0}
            onShow={() => {
              log.showWaiting();
              heading.current?.focus({ preventScroll: true });
              heading.current?.scrollIntoView({ block: 'start' });
            }}
          />
          <Box ref={list} style={{ opacity: log.isStale ? 0.5 : 1 }} aria-busy={log.isStale}>
            <LogBody log={log} problem={windowProblem(timeWindow(address, Date.now()))} isEmpty={isEmpty} />
          </Box>
          {log.shown !== null && log.shown.rows.length > 0 && (
            <LogPager
              page={address.page}
              count={log.shown.rows.length}
              totalCount={log.shown.totalCount}
              searchOf={(page) => `?${writeLogAddress(pageAddress(address, page, log.shown?.rows ?? []))}`}
              onPage={(page) => go(pageAddress(address, page, log.shown?.rows ?? []))}
            />
          )}
        </Stack>
      )}
    </Paper>
  );
}

function LogBody({ log, problem, isEmpty }: { log: DeliveryLog; problem: string | null; isEmpty: boolean }) {
  const isNarrow = useIsNarrow(TABLE_MIN_EM);
  if (problem !== null) return <Text size="sm">{problem}</Text>;
  if (log.error !== null && (log.shown === null || log.isStale)) {
    return (
      <Problem
        title="The deliveries could not be loaded"
        error={log.error}
        onRetry={log.retry}
        isRetrying={log.isFetching}
      />
    );
  }
  if (log.shown === null) return <LoadingRows />;
  if (isEmpty) {
    return (
      <Text size="sm" py="md">
        No delivery matches. Change the filters, or clear them.
      </Text>
    );
  }
  const Rows = isNarrow ? DeliveryCards : DeliveryTable;
  return (
    <DeferredRender fallback={<LoadingRows />}>
      <Rows rows={log.shown.rows} newIds={log.shown.newIds} />
    </DeferredRender>
  );
}

function LoadingRows() {
  return (
    <Stack gap={6} role="status">
      <VisuallyHidden>Loading the deliveries</VisuallyHidden>
      {['a', 'b', 'c', 'd', 'e', 'f'].map((row) => (
        <Skeleton key={row} height={28} aria-hidden />
      ))}
    </Stack>
  );
}

/** Whether the rows must not move, because the user has scrolled into them or one of them has the focus. */
function isScrolledOrFocused(list: HTMLElement | null): boolean {
  if (list === null) return false;
  return list.getBoundingClientRect().top < HEADER_PX || list.contains(document.activeElement);
}

/** Returns the filters of another page. Leaving the first page fixes the upper end of the range. */
function pageAddress(address: LogAddress, page: number, rows: readonly Delivery[]): LogAddress {
  if (address.page > 1 || page === 1) return { ...address, page };
  const newest = rows.reduce((latest, { created_at }) => {
    return BigInt(created_at) > latest ? BigInt(created_at) : latest;
  }, 0n);
  return { ...address, page, before: newest === 0n ? '' : nextMicrosecond(String(newest)) };
}

/** Scrolls to the heading and focuses it after a change of the page. */
function useFocusAfterPaging(heading: { current: HTMLElement | null }, page: number): void {
  const previousPage = useRef(page);
  useEffect(() => {
    if (previousPage.current === page) return;
    previousPage.current = page;
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: 'start' });
  }, [page, heading]);
}
