import { Group, Skeleton, Stack } from '@mantine/core';
import { keepPreviousData, type QueryClient, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { Params } from 'react-router';
import { useChanges } from '../api/changes.ts';
import { ratesQuery } from '../api/incidents.ts';
import { unlessLive } from '../api/live.ts';
import { jobsByIdQuery, subscriptionsQuery } from '../api/subscriptions.ts';
import type { Rates, Subscription } from '../api/types.ts';
import { GuardedLinkButton, WriteNotice } from '../components/guarded.tsx';
import { InPieces, PageHeading, Problem } from '../components/page.tsx';
import { Incidents, incidentsOf, openWords, useIncidents } from '../incidents/incidents.tsx';
import { newWebhookPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { JOBS_NAMED_MAX, writeRefusal } from '../words/webhooks.ts';
import { EmptyList, EmptySearch } from './empty-list.tsx';
import {
  FailingOnly,
  type ListParameters,
  OrderSelect,
  Pager,
  readListParameters,
  SearchField,
  useListParameters,
} from './list-controls.tsx';
import { DeleteDialog, useChangeActive } from './webhook-actions.tsx';
import { WebhookList } from './webhook-list.tsx';

const pollList = unlessLive(15_000);
const LOADING = <Skeleton height="60vh" role="status" aria-label="Loading the webhooks" />;
const NO_RATES: ReadonlyMap<string, Rates> = new Map();

/** See `AskAhead`. */
export function askAhead(client: QueryClient, params: Params, search: URLSearchParams): void {
  const accountId = Number(params.accountId);
  void client.prefetchQuery(listQuery(accountId, readListParameters(search)));
  void client.prefetchQuery(incidentsOf(accountId));
}

function listQuery(accountId: number, { search, page, pageSize, order, isFailingOnly }: ListParameters) {
  return subscriptionsQuery(accountId, {
    search,
    order_by: order,
    ...(isFailingOnly && { failing: true }),
    limit: pageSize,
    offset: (page - 1) * pageSize,
  });
}

/** Account Settings, Webhooks: the list (docs/contract.md#subscriptions). */
export function Component() {
  const account = useAccount();
  const refusal = writeRefusal(account);
  const [parameters, change] = useListParameters();
  const { search, page, pageSize, order, isFailingOnly } = parameters;
  useChanges(account.id, null);
  const changeActive = useChangeActive(account.id);
  // An answer from before a change must not undo what the switch shows.
  const refetchInterval = changeActive.isPending ? false : pollList;
  const list = useQuery({ ...listQuery(account.id, parameters), refetchInterval });
  const names = useJobNames(account.id, list.data?.data);
  const rates = useQuery(
    ratesQuery(
      account.id,
      (list.data?.data ?? []).map(({ id }) => id),
    ),
  );
  const [deleting, setDeleting] = useState<Subscription | null>(null);

  const totalCount = list.data?.extra.pagination.total_count ?? 0;
  const pageCount = Math.max(1, Math.ceil(totalCount / pageSize));
  const isPastEnd = list.isSuccess && !list.isPlaceholderData && page > pageCount;
  useEffect(() => {
    if (isPastEnd) change({ page: pageCount });
  });

  const isEmpty = list.isSuccess && totalCount === 0;
  const isNarrowed = search !== '' || isFailingOnly;
  const { open, isMore, isPending } = useIncidents(account.id);
  return (
    <>
      <PageHeading
        title="Webhooks"
        tabTitle={open.length === 0 ? 'Webhooks' : `${openWords(open.length, isMore)} failing: Webhooks`}
        below={`What tells other systems about the runs of ${account.name}.`}
        actions={
          <GuardedLinkButton to={newWebhookPath(account.id)} reason={refusal}>
            Create New Webhook
          </GuardedLinkButton>
        }
      />
      <WriteNotice />
      {isPending ? (
        // What stands above the list must not push it away when it comes.
        LOADING
      ) : (
        <InPieces meanwhile={LOADING}>
          <Stack gap="md">
            <Incidents accountId={account.id} refusal={refusal} />
            {(!isEmpty || isNarrowed) && (
              <Group>
                <SearchField value={search} onSearch={(text) => change({ search: text })} />
                <OrderSelect value={order} onChange={(wanted) => change({ order: wanted })} />
                <FailingOnly isOn={isFailingOnly} onChange={(isOn) => change({ isFailingOnly: isOn })} />
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
            {isEmpty && !isNarrowed && <EmptyList refusal={refusal} accountId={account.id} />}
            {isEmpty && isNarrowed && (
              <EmptySearch
                search={search}
                isFailingOnly={isFailingOnly}
                onClear={() => change({ search: '', isFailingOnly: false })}
              />
            )}
            {!isEmpty && !(list.isError && list.data === undefined) && (
              <WebhookList
                accountId={account.id}
                subscriptions={list.data?.data ?? null}
                skeletonCount={pageSize}
                isOutdated={list.isPlaceholderData}
                jobNames={names}
                rates={rates.data ?? NO_RATES}
                refusal={refusal}
                onActive={(subscription, active) => changeActive.mutate({ subscription, active })}
                onDelete={setDeleting}
              />
            )}
            {list.isSuccess && !isEmpty && (
              <Pager
                page={Math.min(page, pageCount)}
                pageSize={pageSize}
                totalCount={totalCount}
                onPage={(wanted) => change({ page: wanted })}
                onPageSize={(wanted) => change({ pageSize: wanted })}
              />
            )}
          </Stack>
        </InPieces>
      )}
      <DeleteDialog accountId={account.id} webhook={deleting} onClose={() => setDeleting(null)} />
    </>
  );
}

/** Names of the jobs that the list tells by name. */
function useJobNames(
  accountId: number,
  subscriptions: Subscription[] | undefined,
): ReadonlyMap<string, string> {
  const ids = (subscriptions ?? [])
    .filter(({ job_ids }) => job_ids.length <= JOBS_NAMED_MAX)
    .flatMap(({ job_ids }) => job_ids);
  const jobs = useQuery({ ...jobsByIdQuery(accountId, ids), placeholderData: keepPreviousData });
  return new Map((jobs.data ?? []).map(({ id, name }) => [String(id), name]));
}
