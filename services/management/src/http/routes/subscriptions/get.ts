import type { Database } from '@runhook/database';
import { findSubscription } from '../../../data/subscriptions.ts';
import { subscriptionView } from '../../../domain/subscription-view.ts';
import { READ_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { SUBSCRIPTION_PATH } from './paths.ts';
import { subscriptionKey, subscriptionNotFound } from './subscription-key.ts';

/** Spec, section 4.2. */
export function getSubscriptionEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTION_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const row = await findSubscription(pool, subscriptionKey(request));
      if (!row) throw subscriptionNotFound();
      return { code: 200, data: subscriptionView(row) };
    },
  };
}
