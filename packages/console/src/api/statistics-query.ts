import { queryOptions } from '@tanstack/react-query';
import { subscriptionApi } from './account-path.ts';
import { logKey, type WebhookKey } from './delivery-queries.ts';
import { request } from './request.ts';
import type { Statistics } from './statistics.ts';

const HOURS = 24;
const POLL_MS = 15_000;

/** The last 24 hours, asked for again while they are looked at. */
export function statisticsQuery(key: WebhookKey) {
  return queryOptions({
    queryKey: [...logKey(key), 'statistics'],
    queryFn: async ({ signal }) => {
      const path = `${subscriptionApi(key.accountId, key.webhookId)}/statistics`;
      return (await request<Statistics>(path, { query: { hours: HOURS }, signal })).data;
    },
    refetchInterval: POLL_MS,
  });
}
