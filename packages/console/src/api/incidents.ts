import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { pollUnlessLive } from './live.ts';
import { type Query, request } from './request.ts';
import { webhooksKey } from './subscriptions.ts';

const INCIDENTS = '/api/v3/accounts/{account_id}/webhooks/incidents';
const RATES = '/api/v3/accounts/{account_id}/webhooks/statistics';
const INCIDENTS_POLL_MS = 15_000;
const RATES_POLL_MS = 60_000;

export function incidentsKey(accountId: number) {
  return [...webhooksKey(accountId), 'incidents'] as const;
}

/** Open incidents, followed by closed ones; polled while no changes are received. */
export function incidentsQuery(accountId: number, query: Query<'get', typeof INCIDENTS>) {
  return queryOptions({
    queryKey: [...incidentsKey(accountId), query],
    queryFn: async ({ signal }) =>
      (await request('get', INCIDENTS, { path: { account_id: accountId }, query, signal })).data,
    placeholderData: keepPreviousData,
    refetchInterval: pollUnlessLive(INCIDENTS_POLL_MS),
  });
}

/** Returns the number of open incidents of all webhooks of the account. */
export function openCountQuery(accountId: number) {
  const query = { status: 'open', limit: 1 } as const;
  return queryOptions({
    queryKey: [...incidentsKey(accountId), 'open-count'],
    queryFn: async ({ signal }) => {
      const { extra } = await request('get', INCIDENTS, { path: { account_id: accountId }, query, signal });
      return extra.pagination.total_count;
    },
    refetchInterval: pollUnlessLive(INCIDENTS_POLL_MS),
  });
}

export function ratesKey(accountId: number) {
  return [...webhooksKey(accountId), 'rates'] as const;
}

/** Deliveries and failures of the last 24 hours, by webhook. */
export function ratesQuery(accountId: number, webhookIds: readonly string[]) {
  const subscription_id = [...webhookIds].sort().join(',');
  return queryOptions({
    queryKey: [...ratesKey(accountId), subscription_id],
    enabled: webhookIds.length > 0,
    queryFn: async ({ signal }) => {
      const path = { account_id: accountId };
      const { data } = await request('get', RATES, { path, query: { subscription_id }, signal });
      return new Map(data.map((rates) => [rates.subscription_id, rates]));
    },
    placeholderData: keepPreviousData,
    refetchInterval: pollUnlessLive(RATES_POLL_MS),
  });
}
