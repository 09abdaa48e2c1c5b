import type { Subscription, SubscriptionRequest } from './types.ts';

/** What a PUT that changes nothing would send. */
export function subscriptionRequest(subscription: Subscription): SubscriptionRequest {
  const { name, description, event_types, job_ids, client_url, active } = subscription;
  return { name, description, event_types, job_ids: job_ids.map(Number), client_url, active };
}
