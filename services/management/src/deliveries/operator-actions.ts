// SQL by hand: finds a delivery of the log by its id alone, and cancels it only if it is pending.
import { idDay, isId } from '@runhook/contract';
import { column, inTransaction, type Pool, queryRows } from '@runhook/database';
import {
  type AttemptView,
  type DeliveryKey,
  type DeliveryView,
  findDelivery,
  listAttempts,
  operatorAttemptView,
  operatorDeliveryView,
} from './delivery.ts';
import { beginRedelivery } from './redeliver.ts';

/* Operators' commands on a delivery of which a subscriber reported only the id (docs/administration.md#deliveries). */

const SELECT_DELIVERY_KEY = 'SELECT account_id, subscription_id FROM deliveries WHERE day = $1 AND id = $2';

const DELIVERY_KEY_COLUMNS = { account_id: column.digits, subscription_id: column.text };

/** Returns the account and subscription of a delivery; null if the log does not have it. */
export async function findDeliveryKey(pool: Pool, id: string): Promise<DeliveryKey | null> {
  if (!isId('delivery', id)) return null;
  const values = [idDay('delivery', id), id];
  const [row = null] = await queryRows(pool, DELIVERY_KEY_COLUMNS, SELECT_DELIVERY_KEY, values);
  return row && { id, accountId: Number(row.account_id), subscriptionId: row.subscription_id };
}

/** A delivery as it is shown to operators, with its account. */
export interface DeliveryDetails {
  delivery: DeliveryView & { account_id: string; webhook_name: string };
  attempts: AttemptView[];
}

export async function readDeliveryDetails(pool: Pool, key: DeliveryKey): Promise<DeliveryDetails | null> {
  const row = await findDelivery(pool, key);
  if (row === null) return null;
  const { account_id, webhook_name } = row;
  const attempts = await listAttempts(pool, key);
  return {
    delivery: { ...operatorDeliveryView(row), account_id, webhook_name },
    attempts: attempts.map(operatorAttemptView),
  };
}

/** Starts a new cycle and returns its number; null if the delivery is pending, or its subscription not active. */
export async function redeliver(pool: Pool, key: DeliveryKey): Promise<number | null> {
  const redelivery = await inTransaction(pool, (transaction) => beginRedelivery(transaction, key));
  return redelivery?.cycle ?? null;
}

const CANCELLED_REASON = 'An operator cancelled the delivery.';

const CANCEL_DELIVERY = `
  UPDATE deliveries
  SET status = 'cancelled', reason = $3, completed_at = now(), next_attempt_at = NULL, deferred_at = NULL
  WHERE day = $1 AND id = $2 AND account_id = $4 AND status = 'pending'
  RETURNING id`;

/**
 * Cancels a pending delivery; returns false if there is none with that id. An attempt in flight is not aborted: it is
 * logged, but not followed by another. The job in the queue finds the delivery cancelled when it is due.
 */
export async function cancelDelivery(pool: Pool, { id, accountId }: DeliveryKey): Promise<boolean> {
  const values = [idDay('delivery', id), id, CANCELLED_REASON, accountId];
  return (await queryRows(pool, { id: column.text }, CANCEL_DELIVERY, values)).length > 0;
}
