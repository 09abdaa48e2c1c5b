import { isId } from '@runhook/contract';
import type { PrismaClient } from '@runhook/database/prisma';
import type { AccountRequest } from '../http/endpoint.ts';
import { ConflictError, NotFoundError } from '../http/errors.ts';
import type { SubscriptionRow } from './fields.ts';
import {
  countSubscriptions,
  findSubscription,
  type SubscriptionKey,
  type SubscriptionWithSecret,
} from './statements.ts';

// Shared with other features: the path of a subscription, its lookup in a request, and checks before it is written.

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

/** Throws a 409 if the account has its maximum of subscriptions. Concurrent calls may exceed it by a few. */
export async function requireFreeSubscription(
  transaction: Pick<PrismaClient, 'subscription'>,
  accountId: number,
  subscriptionsMax: number,
): Promise<void> {
  if ((await countSubscriptions(transaction, accountId)) >= subscriptionsMax)
    throw new ConflictError(`The account has ${subscriptionsMax} webhooks, the maximum.`);
}

/** Returns the entity tag. `updated_at` changes with every PUT and with nothing else. */
export function etagOf({ updatedAtMicros }: Pick<SubscriptionRow, 'updatedAtMicros'>): string {
  return `"${updatedAtMicros}"`;
}
