import { subscriptionApi } from './account-path.ts';
import type { WebhookKey } from './delivery-queries.ts';
import { request } from './request.ts';
import type { Verification } from './types.ts';

/** Sends a signed sample to the endpoint and answers how that went. Nothing of it is kept. */
export async function testEndpoint({ accountId, webhookId }: WebhookKey): Promise<Verification> {
  return (await request<Verification>(`${subscriptionApi(accountId, webhookId)}/test`)).data;
}
