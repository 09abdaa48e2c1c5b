import { isId } from '@runhook/contract';
import type { PrismaClient } from '@runhook/database/prisma';
import type { AccountRequest } from '../http/endpoint.ts';
import { NotFoundError } from '../http/errors.ts';
import { findSubscription, type SubscriptionKey, type SubscriptionWithSecret } from './statements.ts';

// What other features know of subscriptions: where they are, and the one that a request names.

export const SUBSCRIPTION_PATH = '/api/v3/accounts/:account_id/webhooks/subscription/:webhook_id';

/** The live subscription that the path names; a 404 for any other: a deleted one's log is gone from the API. */
export async function requiredSubscription(
  prisma: PrismaClient,
  request: AccountRequest,
): Promise<SubscriptionWithSecret> {
  const row = await findSubscription(prisma, subscriptionKey(request));
  if (!row) throw subscriptionNotFound();
  return row;
}

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
