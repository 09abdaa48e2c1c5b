import { idDay } from '@runhook/contract';
import { type Database, runStatement } from '@runhook/database';
import type { AttemptRow } from '../domain/attempt-view.ts';
import type { DeliveryRow } from '../domain/delivery-view.ts';
import { DELIVERY_COLUMNS } from './delivery-columns.ts';
import { microsOf } from './micros.ts';

type Pool = Database['pool'];

/** Names a delivery of a subscription; whose subscription it is was asked before. */
export interface DeliveryKey {
  subscriptionId: string;
  id: string;
}

/** A delivery with what its body is rendered from. */
export interface DeliveryWithEvent extends Omit<DeliveryRow, 'event_data'> {
  webhook_name: string;
  account_id: string;
  event_timestamp: string | null;
  event_data: (Record<string, unknown> & { jobName: string }) | null;
}

const SELECT_ONE = `
  SELECT ${DELIVERY_COLUMNS}, d.webhook_name, d.account_id::text AS account_id, e."timestamp" AS event_timestamp,
    e.data AS event_data
  FROM deliveries d
  LEFT JOIN events e ON e.day = d.day AND e.id = d.event_id
  WHERE d.day = $1 AND d.id = $2 AND d.subscription_id = $3`;

export async function findDelivery(
  pool: Pool,
  { id, subscriptionId }: DeliveryKey,
): Promise<DeliveryWithEvent | null> {
  const values = [idDay('delivery', id), id, subscriptionId];
  return (await runStatement<DeliveryWithEvent>(pool, SELECT_ONE, values))[0] ?? null;
}

const SELECT_ATTEMPTS = `
  SELECT number, trigger, ${microsOf('started_at')} AS started_at, duration_ms, http_status_code, error_code,
    error_message, request_headers, response_headers, response_body, response_truncated
  FROM attempts
  WHERE day = $1 AND delivery_id = $2
  ORDER BY number`;

/** Every attempt of a delivery, in the order they were made. */
export async function listAttempts(pool: Pool, deliveryId: string): Promise<AttemptRow[]> {
  return await runStatement<AttemptRow>(pool, SELECT_ATTEMPTS, [idDay('delivery', deliveryId), deliveryId]);
}
