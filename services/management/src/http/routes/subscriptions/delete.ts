import type { Database } from '@runhook/database';
import { deleteSubscription } from '../../../data/subscriptions.ts';
import { WRITE_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { SUBSCRIPTION_PATH } from './paths.ts';
import { subscriptionKey, subscriptionNotFound } from './subscription-key.ts';

/** Spec, section 4.6. */
export function deleteSubscriptionEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'DELETE',
    path: SUBSCRIPTION_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const key = subscriptionKey(request);
      if (!(await deleteSubscription(pool, key))) throw subscriptionNotFound();
      return { code: 200, data: { id: key.id }, isSuccess: true };
    },
  };
}
