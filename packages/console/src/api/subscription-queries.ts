import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { subscriptionApi, webhooksApi } from './account-path.ts';
import { request } from './request.ts';
import type { Page, Subscription } from './types.ts';

export interface SubscriptionFilters {
  search: string;
  limit: number;
  offset: number;
}

/** Everything about an account's webhooks: invalidated together after a change. */
export function webhooksKey(accountId: number) {
  return ['accounts', accountId, 'webhooks'] as const;
}

export function subscriptionsQuery(accountId: number, filters: SubscriptionFilters) {
  return queryOptions({
    queryKey: [...webhooksKey(accountId), 'list', filters],
    queryFn: ({ signal }) =>
      request<Subscription[], Page>(`${webhooksApi(accountId)}/subscriptions`, {
        query: { ...filters },
        signal,
      }),
    placeholderData: keepPreviousData,
  });
}

export function subscriptionQuery(accountId: number, webhookId: string) {
  return queryOptions({
    queryKey: [...webhooksKey(accountId), webhookId],
    queryFn: async ({ signal }) =>
      (await request<Subscription>(subscriptionApi(accountId, webhookId), { signal })).data,
  });
}
