import type { EventType } from '@runhook/contract/event-types';
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { type Query, request, type SuccessEnvelope } from './request.ts';
import type {
  CreatedSubscription,
  EndpointTest,
  EndpointTestFields,
  Subscription,
  SubscriptionFields,
} from './types.ts';

const SUBSCRIPTIONS_PATH = '/api/v3/accounts/{account_id}/webhooks/subscriptions';
const SUBSCRIPTION_PATH = '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}';
const UNSAVED_TEST_PATH = '/api/v3/accounts/{account_id}/webhooks/test';
const JOBS_PATH = '/api/v2/accounts/{account_id}/jobs';

/** The error code determines the text for an attempt: the status alone does not show whether the endpoint or Runhook set it. */
const INCLUDE_DETAILS = { include: 'error_code,health' } as const;

/** Identifies a webhook of an account. */
export interface WebhookKey {
  accountId: number;
  webhookId: string;
}

export type SubscriptionPage = SuccessEnvelope<'get', typeof SUBSCRIPTIONS_PATH>;

/** Prefix of the query keys of an account's webhooks and of their incidents, runs and logs. */
export function webhooksKey(accountId: number) {
  return ['accounts', accountId, 'webhooks'] as const;
}

/** Returns the path parameters of the API. */
export function pathParameters({ accountId, webhookId }: WebhookKey) {
  return { account_id: accountId, webhook_id: webhookId };
}

export function subscriptionsQuery(accountId: number, query: Query<'get', typeof SUBSCRIPTIONS_PATH>) {
  return queryOptions({
    queryKey: [...webhooksKey(accountId), 'list', query],
    queryFn: ({ signal }) =>
      request('get', SUBSCRIPTIONS_PATH, {
        path: { account_id: accountId },
        query: { ...query, ...INCLUDE_DETAILS },
        signal,
      }),
    placeholderData: keepPreviousData,
  });
}

export function subscriptionQuery(key: WebhookKey) {
  return queryOptions({
    queryKey: [...webhooksKey(key.accountId), key.webhookId],
    queryFn: async ({ signal }) =>
      (await request('get', SUBSCRIPTION_PATH, { path: pathParameters(key), query: INCLUDE_DETAILS, signal }))
        .data,
  });
}

export async function readSubscription(key: WebhookKey): Promise<Subscription> {
  return (await request('get', SUBSCRIPTION_PATH, { path: pathParameters(key) })).data;
}

export async function createSubscription(
  accountId: number,
  body: SubscriptionFields,
): Promise<CreatedSubscription> {
  return (await request('post', SUBSCRIPTIONS_PATH, { path: { account_id: accountId }, body })).data;
}

/**
 * Replaces all fields, but keeps omitted headers. Fails with 412 if the webhook was replaced since the user read it.
 * @param expectedUpdatedAt `updated_at` of the version that the user read
 */
export async function replaceSubscription(
  key: WebhookKey,
  body: SubscriptionFields,
  expectedUpdatedAt: string,
): Promise<Subscription> {
  const headers = { 'if-match': `"${expectedUpdatedAt}"` };
  return (await request('put', SUBSCRIPTION_PATH, { path: pathParameters(key), body, headers })).data;
}

/** Reads the current fields first: a PUT sets omitted ones to defaults, except headers. */
export async function setActive(key: WebhookKey, active: boolean): Promise<void> {
  const data = await readSubscription(key);
  const { name, description, event_types, job_ids, client_url, updated_at } = data;
  const fields = { name, description, event_types, job_ids: job_ids.map(Number), client_url, active };
  await replaceSubscription(key, fields, updated_at);
}

export async function deleteSubscription(key: WebhookKey): Promise<void> {
  await request('delete', SUBSCRIPTION_PATH, { path: pathParameters(key) });
}

/** Rotates the secret and returns the new one, which no other response contains. */
export async function rotateSecret(key: WebhookKey, overlapHours: number): Promise<string> {
  const body = { overlap_hours: overlapHours };
  return (await request('post', `${SUBSCRIPTION_PATH}/rotate-secret`, { path: pathParameters(key), body }))
    .data.hmac_secret;
}

/** Adds a key pair; for a day both sign. */
export async function rotateSignatureKey(key: WebhookKey): Promise<void> {
  const parts = { path: pathParameters(key), body: { overlap_hours: 24 } };
  await request('post', `${SUBSCRIPTION_PATH}/rotate-signature-key`, parts);
}

export async function finishRotation(key: WebhookKey): Promise<void> {
  await request('post', `${SUBSCRIPTION_PATH}/finish-rotation`, { path: pathParameters(key) });
}

/** Sends a signed sample to the endpoint and returns the result, which is not logged. */
export async function testEndpoint(key: WebhookKey, eventType: EventType): Promise<EndpointTest> {
  const query = { event_type: eventType, include: 'error_code,exchange' };
  return (await request('get', `${SUBSCRIPTION_PATH}/test`, { path: pathParameters(key), query })).data;
}

/** Sends a signed sample in an unsaved format to the endpoint, with the secret and the headers of the webhook. */
export async function testFormat(
  key: WebhookKey,
  eventType: EventType,
  { format, format_options }: Pick<SubscriptionFields, 'format' | 'format_options'>,
): Promise<EndpointTest> {
  const body = { event_type: eventType, format: format ?? null, format_options: format_options ?? null };
  return (await request('post', `${SUBSCRIPTION_PATH}/test`, { path: pathParameters(key), body })).data;
}

/**
 * Tests an endpoint before it is saved. Without a secret in `body`, the response contains the one that was generated for the
 * test.
 */
export async function testUnsaved(accountId: number, body: EndpointTestFields): Promise<EndpointTest> {
  return (await request('post', UNSAVED_TEST_PATH, { path: { account_id: accountId }, body })).data;
}

/** Maximum number of job ids in one call. */
const IDS_MAX = 100;
export const JOBS_SHOWN_MAX = 50;

/** Returns the first jobs whose name contains the text or whose id begins with it; for an empty text, the first of all jobs. */
export function jobSearchQuery(accountId: number, search: string) {
  return queryOptions({
    queryKey: ['accounts', accountId, 'jobs', 'search', search],
    queryFn: ({ signal }) =>
      request('get', JOBS_PATH, {
        path: { account_id: accountId },
        query: { search, limit: JOBS_SHOWN_MAX },
        signal,
      }),
    placeholderData: keepPreviousData,
  });
}

/** Fetches jobs by id, a hundred per call. Deleted jobs are missing from the result. */
export function jobsByIdQuery(accountId: number, ids: readonly string[]) {
  const sorted = [...new Set(ids)].sort();
  return queryOptions({
    queryKey: ['accounts', accountId, 'jobs', 'ids', sorted],
    enabled: sorted.length > 0,
    staleTime: 60_000,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const path = { account_id: accountId };
      const jobs = [];
      for (let first = 0; first < sorted.length; first += IDS_MAX) {
        const query = { ids: sorted.slice(first, first + IDS_MAX).join(','), limit: IDS_MAX };
        jobs.push(...(await request('get', JOBS_PATH, { path, query, signal })).data);
      }
      return jobs;
    },
  });
}
