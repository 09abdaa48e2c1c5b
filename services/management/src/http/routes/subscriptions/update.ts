import type { UrlProblem } from '@runhook/contract';
import type { Database } from '@runhook/database';
import { updateSubscription } from '../../../data/subscriptions.ts';
import { subscriptionView } from '../../../domain/subscription-view.ts';
import { WRITE_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { SUBSCRIPTION_PATH } from './paths.ts';
import { readSubscriptionFields } from './subscription-fields.ts';
import { subscriptionKey, subscriptionNotFound } from './subscription-key.ts';

/** Spec, section 4.4. Replaces: what is left out means its default, but an omitted `active` keeps the stored value. */
export function updateSubscriptionEndpoint(deps: {
  pool: Database['pool'];
  urlProblem: UrlProblem;
}): AccountEndpoint {
  return {
    method: 'PUT',
    path: SUBSCRIPTION_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const key = subscriptionKey(request);
      const fields = await readSubscriptionFields(deps, request);
      const row = await updateSubscription(deps.pool, key, fields);
      if (!row) throw subscriptionNotFound();
      return { code: 200, data: subscriptionView(row) };
    },
  };
}
