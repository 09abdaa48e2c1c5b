import { queryOptions } from '@tanstack/react-query';
import { deliveryApi, subscriptionApi } from './account-path.ts';
import type { DeliveryPage } from './delivery-page.ts';
import { request } from './request.ts';
import { webhooksKey } from './subscription-queries.ts';
import type { Delivery, DeliveryDetail, DeliveryStatus, Page } from './types.ts';

/** Empty values let everything through. */
export interface DeliveryFilters {
  status: DeliveryStatus | '';
  event_type: string;
  run_id: string;
  /** Microseconds since the epoch, as digits; created at or after it. */
  since: string;
  /** As `since`; created before it. */
  until: string;
}

/** One webhook that belongs to an account. */
export interface WebhookKey {
  accountId: number;
  webhookId: string;
}

/** Everything about a webhook's log. */
export function logKey({ accountId, webhookId }: WebhookKey) {
  return [...webhooksKey(accountId), webhookId, 'log'] as const;
}

/** A page of the log, newest first. */
export async function fetchDeliveries(
  { accountId, webhookId }: WebhookKey,
  query: Partial<DeliveryFilters> & { limit: number; offset?: number },
  signal?: AbortSignal,
): Promise<DeliveryPage> {
  const path = `${subscriptionApi(accountId, webhookId)}/deliveries`;
  const { data, extra } = await request<Delivery[], Page>(path, { query, signal });
  return { rows: data, totalCount: extra.pagination.total_count };
}

export function deliveryQuery(key: WebhookKey, deliveryId: string) {
  return queryOptions({
    queryKey: [...logKey(key), 'delivery', deliveryId],
    queryFn: async ({ signal }) => {
      const path = deliveryApi(key.accountId, key.webhookId, deliveryId);
      return (await request<DeliveryDetail>(path, { signal })).data;
    },
  });
}

/** Sends it again; what comes back is pending. A 409 says why it cannot be. */
export async function redeliver(key: WebhookKey, deliveryId: string): Promise<Delivery> {
  const path = `${deliveryApi(key.accountId, key.webhookId, deliveryId)}/redeliver`;
  return (await request<Delivery>(path, { method: 'POST' })).data;
}
