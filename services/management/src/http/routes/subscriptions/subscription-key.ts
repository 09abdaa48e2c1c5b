import { isId } from '@runhook/contract';
import type { SubscriptionKey } from '../../../data/subscriptions.ts';
import type { AccountRequest } from '../../endpoint.ts';
import { NotFoundError } from '../../errors.ts';

/** The subscription that the path names. Throws a 404 for what cannot be an id. */
export function subscriptionKey({ account, param }: AccountRequest): SubscriptionKey {
  const id = param('webhook_id');
  if (!isId('subscription', id)) throw subscriptionNotFound();
  return { accountId: account.id, id };
}

/** One answer for a malformed, unknown, deleted or foreign id. */
export function subscriptionNotFound(): NotFoundError {
  return new NotFoundError('Webhook not found.');
}
