import { isId } from '@runhook/contract';
import type { Database } from '@runhook/database';
import type { DeliveryKey } from '../../../data/deliveries.ts';
import { findSubscription } from '../../../data/subscriptions.ts';
import type { AccountRequest } from '../../endpoint.ts';
import { NotFoundError } from '../../errors.ts';
import { subscriptionKey, subscriptionNotFound } from '../subscriptions/subscription-key.ts';

/** The live subscription that the path names; a 404 for any other: a deleted one's log is gone from the API. */
export async function requiredSubscription(
  pool: Database['pool'],
  request: AccountRequest,
): Promise<{ id: string; active: boolean }> {
  const row = await findSubscription(pool, subscriptionKey(request));
  if (!row) throw subscriptionNotFound();
  return row;
}

/** The delivery that the path names, under that subscription. */
export function deliveryKey(subscription: { id: string }, { param }: AccountRequest): DeliveryKey {
  const id = param('delivery_id');
  if (!isId('delivery', id)) throw deliveryNotFound();
  return { subscriptionId: subscription.id, id };
}

export function deliveryNotFound(): NotFoundError {
  return new NotFoundError('Delivery not found.');
}
