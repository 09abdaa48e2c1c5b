import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { pollUnlessLive } from './live.ts';
import { type Query, request } from './request.ts';
import { pathParameters, type WebhookKey, webhooksKey } from './subscriptions.ts';
import type { Delivery, DeliveryPage, Recovery, RecoveryPreview, RecoveryRequest } from './types.ts';

const WEBHOOK_PATH = '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}';
const DELIVERIES_PATH = `${WEBHOOK_PATH}/deliveries`;
const DELIVERY_PATH = `${WEBHOOK_PATH}/delivery/{delivery_id}`;
const STATISTICS_POLL_MS = 15_000;
const RECOVERY_POLL_MS = 2_000;
const RECOVERIES_SHOWN = 5;

export type DeliveriesQuery = Query<'get', typeof DELIVERIES_PATH>;

/** Prefix of the query keys of a webhook's log, statistics and recoveries. */
export function logKey({ accountId, webhookId }: WebhookKey) {
  return [...webhooksKey(accountId), webhookId, 'log'] as const;
}

/** Fetches a page of the log, newest first. */
export async function fetchDeliveries(
  key: WebhookKey,
  query: DeliveriesQuery,
  signal?: AbortSignal,
): Promise<DeliveryPage> {
  const { data, extra } = await request('get', DELIVERIES_PATH, { path: pathParameters(key), query, signal });
  return { rows: data, totalCount: extra.pagination.total_count };
}

export function deliveryQuery(key: WebhookKey, deliveryId: string) {
  const path = { ...pathParameters(key), delivery_id: deliveryId };
  return queryOptions({
    queryKey: [...logKey(key), 'delivery', deliveryId],
    queryFn: async ({ signal }) => (await request('get', DELIVERY_PATH, { path, signal })).data,
  });
}

/** Queues a delivery again and returns it as pending. Throws a 409 with the reason if it cannot be resent. */
export async function redeliver(key: WebhookKey, deliveryId: string): Promise<Delivery> {
  const path = { ...pathParameters(key), delivery_id: deliveryId };
  return (await request('post', `${DELIVERY_PATH}/redeliver`, { path })).data;
}

/** Statistics of the last `hours` hours, polled while no changes are received. */
export function statisticsQuery(key: WebhookKey, hours: number) {
  const query = { hours };
  return queryOptions({
    queryKey: [...logKey(key), 'statistics', hours],
    queryFn: async ({ signal }) =>
      (await request('get', `${WEBHOOK_PATH}/statistics`, { path: pathParameters(key), query, signal })).data,
    refetchInterval: pollUnlessLive(STATISTICS_POLL_MS),
  });
}

export async function startRecovery(key: WebhookKey, body: RecoveryRequest): Promise<Recovery> {
  const { data } = await request('post', `${WEBHOOK_PATH}/recover`, { path: pathParameters(key), body });
  if ('dry_run' in data) throw new TypeError('The response is that of a dry run.');
  return data;
}

/** Counts what a recovery would send. */
export function recoveryCountQuery(key: WebhookKey, body: RecoveryRequest) {
  return queryOptions({
    queryKey: [...logKey(key), 'recoverable', body],
    queryFn: ({ signal }) => countRecovery(key, body, signal),
    placeholderData: keepPreviousData,
  });
}

/** Returns the last time for which the webhook was inactive. @param openedMs when the dialog was opened, to read it once */
export function missedIntervalQuery(key: WebhookKey, openedMs: number) {
  return queryOptions({
    queryKey: [...logKey(key), 'missed', openedMs],
    queryFn: ({ signal }) => countRecovery(key, { include: 'unsent' }, signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
}

async function countRecovery(
  key: WebhookKey,
  body: Partial<RecoveryRequest>,
  signal: AbortSignal,
): Promise<RecoveryPreview> {
  const parts = { path: pathParameters(key), body: { ...body, dry_run: true }, signal };
  const { data } = await request('post', `${WEBHOOK_PATH}/recover`, parts);
  if (!('dry_run' in data)) throw new TypeError('The response is not that of a dry run.');
  return data;
}

/** Stops a recovery. Deliveries that it has queued are still sent. */
export async function stopRecovery(key: WebhookKey, recoveryId: string): Promise<Recovery> {
  const path = { ...pathParameters(key), recovery_id: recoveryId };
  return (await request('post', `${WEBHOOK_PATH}/recovery/{recovery_id}/cancel`, { path })).data;
}

/** The latest recoveries, newest first; polled while one is running or has pending deliveries. */
export function recoveriesQuery(key: WebhookKey) {
  return queryOptions({
    queryKey: recoveriesKey(key),
    queryFn: async ({ signal }) =>
      (
        await request('get', `${WEBHOOK_PATH}/recoveries`, {
          path: pathParameters(key),
          query: { limit: RECOVERIES_SHOWN },
          signal,
        })
      ).data,
    refetchInterval: ({ state }) => (state.data?.some(isInProgress) ? RECOVERY_POLL_MS : false),
  });
}

export function recoveriesKey(key: WebhookKey) {
  return [...logKey(key), 'recoveries'] as const;
}

function isInProgress({ status, outcome }: Recovery): boolean {
  return status === 'running' || outcome.pending > 0;
}
