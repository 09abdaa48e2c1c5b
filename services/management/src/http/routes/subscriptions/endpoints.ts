import type { UrlProblem } from '@runhook/contract';
import type { Database, SecretBox } from '@runhook/database';
import type { Egress } from '@runhook/egress';
import type { AccountEndpoint } from '../../endpoint.ts';
import { createSubscriptionEndpoint } from './create.ts';
import { deleteSubscriptionEndpoint } from './delete.ts';
import { getSubscriptionEndpoint } from './get.ts';
import { listSubscriptionsEndpoint } from './list.ts';
import { testSubscriptionEndpoint } from './test.ts';
import { updateSubscriptionEndpoint } from './update.ts';

/** Spec, section 4: everything about subscriptions. */
export function subscriptionEndpoints(deps: {
  pool: Database['pool'];
  secrets: SecretBox;
  urlProblem: UrlProblem;
  egress: Pick<Egress, 'post'>;
  deliveryTimeoutMs: number;
}): AccountEndpoint[] {
  return [
    listSubscriptionsEndpoint(deps),
    createSubscriptionEndpoint(deps),
    getSubscriptionEndpoint(deps),
    updateSubscriptionEndpoint(deps),
    deleteSubscriptionEndpoint(deps),
    testSubscriptionEndpoint(deps),
  ];
}
