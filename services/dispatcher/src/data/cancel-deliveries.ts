import { idDay } from '@runhook/contract';
import { runStatement } from '@runhook/database';
import type pg from 'pg';

const CANCEL_DELIVERIES = `
  UPDATE deliveries d
  SET status = 'cancelled', reason = i.reason, completed_at = now(), next_attempt_at = NULL
  FROM unnest($1::date[], $2::text[], $3::text[]) AS i (day, id, reason)
  WHERE d.day = i.day AND d.id = i.id AND d.status = 'pending'`;

export async function cancelDeliveries(
  pool: pg.Pool,
  cancellations: readonly { deliveryId: string; reason: string }[],
): Promise<void> {
  await runStatement(
    pool,
    CANCEL_DELIVERIES,
    [
      cancellations.map(({ deliveryId }) => idDay('delivery', deliveryId)),
      cancellations.map(({ deliveryId }) => deliveryId),
      cancellations.map(({ reason }) => reason),
    ],
    'cancel-deliveries',
  );
}
