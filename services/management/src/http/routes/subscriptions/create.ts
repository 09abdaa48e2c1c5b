import { createHmacSecret, createId, type UrlProblem } from '@runhook/contract';
import type { Database, SecretBox } from '@runhook/database';
import { insertSubscription } from '../../../data/subscriptions.ts';
import { subscriptionView } from '../../../domain/subscription-view.ts';
import { WRITE_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { SUBSCRIPTIONS_PATH } from './paths.ts';
import { readSubscriptionFields } from './subscription-fields.ts';

/** Spec, section 4.3. The only answer that has `hmac_secret`; at rest it is encrypted. */
export function createSubscriptionEndpoint(deps: {
  pool: Database['pool'];
  secrets: SecretBox;
  urlProblem: UrlProblem;
}): AccountEndpoint {
  return {
    method: 'POST',
    path: SUBSCRIPTIONS_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const fields = await readSubscriptionFields(deps, request);
      const hmacSecret = createHmacSecret();
      const row = await insertSubscription(deps.pool, {
        accountId: request.account.id,
        id: createId('subscription'),
        fields,
        hmacSecretCiphertext: deps.secrets.encrypt(hmacSecret),
      });
      return { code: 201, data: { ...subscriptionView(row), hmac_secret: hmacSecret } };
    },
  };
}
