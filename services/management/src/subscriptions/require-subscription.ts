import { isId } from '@runhook/contract';
import type { PrismaClient } from '@runhook/database/prisma';
import type { AccountRequest } from '../http/endpoint.ts';
import { ConflictError, NotFoundError } from '../http/errors.ts';
import { findSubscription, type SubscriptionKey, type SubscriptionWithSecret } from './statements.ts';

// Shared with other features: the path of a subscription, and the lookup of the subscription in a request.

export const SUBSCRIPTION_PATH = '/api/v3/accounts/:account_id/webhooks/subscription/:webhook_id';

/** Returns the subscription of the path. Throws a 404 for deleted ones, too. */
export async function requireSubscription(
  prisma: PrismaClient,
  request: AccountRequest,
): Promise<SubscriptionWithSecret> {
  const row = await findSubscription(prisma, subscriptionKey(request));
  if (!row) throw subscriptionNotFound();
  return row;
}

/** Returns the key of the subscription that the path names. Throws a 404 for an invalid id. */
export function subscriptionKey({ account, param }: AccountRequest): SubscriptionKey {
  const id = param('webhook_id');
  if (!isId('subscription', id)) throw subscriptionNotFound();
  return { accountId: account.id, id };
}

/** Throws a 409 for a webhook that has only a feed. */
export function requireEndpoint({ clientUrl }: Pick<SubscriptionWithSecret, 'clientUrl'>): void {
  if (clientUrl === '') throw new ConflictError(NO_ENDPOINT_MESSAGE);
}

export const NO_ENDPOINT_MESSAGE = 'The webhook has no endpoint: its events are in its feed.';

/** The same error for a malformed, unknown, deleted or foreign id. */
export function subscriptionNotFound(): NotFoundError {
  return new NotFoundError('Webhook not found.');
}
