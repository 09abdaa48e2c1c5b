import { Group, Skeleton, Stack } from '@mantine/core';
import { keepPreviousData, type QueryClient, useQuery } from '@tanstack/react-query';
import { useCallback, useDeferredValue, useEffect, useMemo, useState } from 'react';
import type { Params } from 'react-router';
import { useChanges } from '../api/changes.ts';
import { ratesQuery } from '../api/incidents.ts';
import { pollUnlessLive } from '../api/live.ts';
import { jobsByIdQuery, subscriptionsQuery } from '../api/subscriptions.ts';
import type { Rates, Subscription } from '../api/types.ts';
import { GuardedLinkButton, WriteNotice } from '../components/guarded.tsx';
import { DeferredRender, PageHeading, Problem } from '../components/page.tsx';
import { Incidents, incidentListQuery, useIncidents } from '../incidents/incidents.tsx';
import { newWebhookPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { JOBS_NAMED_MAX, writeDenialReason } from '../wording/webhooks.ts';
import { EmptyList, EmptySearch } from './empty-list.tsx';
import {
  FailingOnly,
  LabelFilters,
  type ListParameters,
  OrderSelect,
  Pager,
  readListParameters,
  SearchField,
  useListParameters,
} from './list-controls.tsx';
import { DeleteDialog, useChangeActive, useShownActive } from './webhook-actions.tsx';
import { WebhookList, type WebhookListProps } from './webhook-list.tsx';

const pollList = pollUnlessLive(15_000);
const LOADING = <Skeleton height="60vh" role="status" aria-label="Loading the webhooks" />;
const NO_RATES: ReadonlyMap<string, Rates> = new Map();

/** Prefetches the list and the incidents. */
export function prefetch(client: QueryClient, params: Params, search: URLSearchParams): void {
  const accountId = Number(params.accountId);
  void client.prefetchQuery(listQuery(accountId, readListParameters(search)));
  void client.prefetchQuery(incidentListQuery(accountId));
}

function listQuery(accountId: number, parameters: ListParameters) {
  const { search, page, pageSize, order, isFailingOnly, labels } = parameters;
  return subscriptionsQuery(accountId, {
    search,
    order_by: order,
    ...(isFailingOnly && { failing: true }),
    ...(labels.length > 0 && { label: labels }),
    limit: pageSize,
    offset: (page - 1) * pageSize,
  });
}

/** Page "Account Settings, Webhooks": the list (docs/contract.md#subscriptions). */
export function Component() {
  const account = useAccount();
  const denialReason = writeDenialReason(account);
  const [parameters, change] = useListParameters();
  const { search, page, pageSize, order, isFailingOnly, labels } = parameters;
  useChanges(account.id, null);
  const { mutate } = useChangeActive(account.id);
  const switchActive = useCallback<RowsProps['onActive']>(
    (subscription, active) => mutate({ subscription, active }),
    [mutate],
  );
  const list = useQuery({ ...listQuery(account.id, parameters), refetchInterval: pollList });
  const subscriptions = useShownActive(account.id, list.data?.data ?? null);
  const [deleting, setDeleting] = useState<Subscription | null>(null);

  const totalCount = list.data?.extra.pagination.total_count ?? 0;
  const pageCount = Math.max(1, Math.ceil(totalCount / pageSize));
  const isPastEnd = list.isSuccess && !list.isPlaceholderData && page > pageCount;
  useEffect(() => {
    if (isPastEnd) change({ page: pageCount });
  });

  const isEmpty = list.isSuccess && totalCount === 0;
  const isFiltered = search !== '' || isFailingOnly || labels.length > 0;
  const { openCount, isPending } = useIncidents(account.id);
  return (
    <>
      <PageHeading
        title="Webhooks"
        tabTitle={openCount === 0 ? 'Webhooks' : `${openCount.toLocaleString()} failing: Webhooks`}
        subtitle="Webhooks notify other systems about job runs."
        actions={
          <GuardedLinkButton to={newWebhookPath(account.id)} reason={denialReason}>
            Create New Webhook
          </GuardedLinkButton>
        }
      />
      <WriteNotice />
      {isPending ? (
        // Waits for the incidents above the list, which would otherwise shift it.
        LOADING
      ) : (
        <DeferredRender fallback={LOADING}>
          <Stack gap="md">
            <Incidents accountId={account.id} denialReason={denialReason} />
            {(!isEmpty || isFiltered) && (
              <Group>
                <SearchField value={search} onSearch={(text) => change({ search: text })} />
                <OrderSelect value={order} onChange={(value) => change({ order: value })} />
                <FailingOnly isOn={isFailingOnly} onChange={(isOn) => change({ isFailingOnly: isOn })} />
                <LabelFilters labels={labels} onChange={(left) => change({ labels: left })} />
              </Group>
            )}
            {list.isError && list.data === undefined && (
              <Problem
                title="The webhooks could not be loaded"
                error={list.error}
                onRetry={() => void list.refetch()}
                isRetrying={list.isFetching}
              />
            )}
            {isEmpty && !isFiltered && <EmptyList denialReason={denialReason} accountId={account.id} />}
            {isEmpty && isFiltered && (
              <EmptySearch
                search={search}
                isFailingOnly={isFailingOnly}
                labels={labels}
                onClear={() => change({ search: '', isFailingOnly: false, labels: [] })}
              />
            )}
            {!isEmpty && !(list.isError && list.data === undefined) && (
              <RowsOfPage
                subscriptions={subscriptions}
                skeletonCount={pageSize}
                isOutdated={list.isPlaceholderData}
                denialReason={denialReason}
                onActive={switchActive}
                onDelete={setDeleting}
              />
            )}
            {list.isSuccess && !isEmpty && (
              <Pager
                page={Math.min(page, pageCount)}
                pageSize={pageSize}
                totalCount={totalCount}
                onPage={(value) => change({ page: value })}
                onPageSize={(value) => change({ pageSize: value })}
              />
            )}
          </Stack>
        </DeferredRender>
      )}
      <DeleteDialog accountId={account.id} webhook={deleting} onClose={() => setDeleting(null)} />
    </>
  );
}

type RowsProps = Pick<
  WebhookListProps,
  'subscriptions' | 'skeletonCount' | 'isOutdated' | 'denialReason' | 'onActive' | 'onDelete'
>;

/** The names of jobs and the rates are loaded after the rows, and rendered in slices. */
function RowsOfPage(rows: RowsProps) {
  const { id: accountId } = useAccount();
  const subscriptions = rows.subscriptions ?? [];
  const names = useJobNames(accountId, subscriptions);
  const ids = subscriptions.map(({ id }) => id);
  const rates = useQuery(ratesQuery(accountId, ids)).data ?? NO_RATES;
  return (
    <WebhookList
      {...rows}
      accountId={accountId}
      jobNames={useDeferredValue(names)}
      rates={useDeferredValue(rates)}
    />
  );
}

/** Returns the names of the jobs that the list shows by name. */
function useJobNames(accountId: number, subscriptions: readonly Subscription[]): ReadonlyMap<string, string> {
  const ids = subscriptions
    .filter(({ job_ids }) => job_ids.length <= JOBS_NAMED_MAX)
    .flatMap(({ job_ids }) => job_ids);
  const jobs = useQuery({ ...jobsByIdQuery(accountId, ids), placeholderData: keepPreviousData });
  return useMemo(() => new Map((jobs.data ?? []).map(({ id, name }) => [String(id), name])), [jobs.data]);
}
