import { createId, deliveryHeaders, renderPayload } from '@runhook/contract';
import type { Database, SecretBox } from '@runhook/database';
import type { Egress } from '@runhook/egress';
import { findSubscription } from '../../../data/subscriptions.ts';
import { sampleEvent } from '../../../domain/sample-event.ts';
import { verificationOf } from '../../../domain/verification.ts';
import { WRITE_WEBHOOKS } from '../../authorize.ts';
import { type AccountEndpoint, DEADLINE_MS } from '../../endpoint.ts';
import { SUBSCRIPTION_PATH } from './paths.ts';
import { subscriptionKey, subscriptionNotFound } from './subscription-key.ts';

/** Spec, section 4.5. Sends a signed sample to the endpoint, active or not, and leaves no trace in the database. */
export function testSubscriptionEndpoint(deps: {
  pool: Database['pool'];
  secrets: SecretBox;
  egress: Pick<Egress, 'post'>;
  deliveryTimeoutMs: number;
}): AccountEndpoint {
  return {
    method: 'GET',
    path: `${SUBSCRIPTION_PATH}/test`,
    access: WRITE_WEBHOOKS,
    hasEffect: true,
    deadlineMs: deps.deliveryTimeoutMs + DEADLINE_MS,
    async handle(request) {
      const row = await findSubscription(deps.pool, subscriptionKey(request));
      if (!row) throw subscriptionNotFound();
      const sentAt = new Date();
      const event = sampleEvent(request.account.id, createId('event', sentAt.getTime()), sentAt);
      const body = renderPayload(event, row);
      const hmacSecret = deps.secrets.decrypt(row.hmac_secret_ciphertext);
      const result = await deps.egress.post({
        url: row.client_url,
        headers: deliveryHeaders({ body, eventId: event.eventId, hmacSecret, sentAt }),
        body: Buffer.from(body),
      });
      return { code: 200, data: verificationOf(result) };
    },
  };
}
