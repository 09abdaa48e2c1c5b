import { type JobRunEvent, renderPayload } from '@runhook/contract';
import type { Database } from '@runhook/database';
import { type DeliveryWithEvent, findDelivery, listAttempts } from '../../../data/deliveries.ts';
import { attemptView } from '../../../domain/attempt-view.ts';
import { deliveryView } from '../../../domain/delivery-view.ts';
import { READ_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { deliveryKey, deliveryNotFound, requiredSubscription } from './delivery-key.ts';
import { DELIVERY_PATH } from './paths.ts';

/** One delivery with the exact body that was sent and every attempt (DESIGN, section 7, "Deliveries"). */
export function getDeliveryEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'GET',
    path: DELIVERY_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const key = deliveryKey(await requiredSubscription(pool, request), request);
      const [row, attempts] = await Promise.all([findDelivery(pool, key), listAttempts(pool, key.id)]);
      if (!row) throw deliveryNotFound();
      return {
        code: 200,
        data: { ...deliveryView(row), payload: payloadOf(row), attempts: attempts.map(attemptView) },
      };
    },
  };
}

/** Rendered anew, which gives the bytes that were sent: the row has the name that the body has. */
function payloadOf(row: DeliveryWithEvent): string | null {
  if (row.event_data === null) return null;
  const event = {
    accountId: Number(row.account_id),
    eventId: row.event_id,
    eventType: row.event_type,
    timestamp: row.event_timestamp,
    data: row.event_data,
  } as unknown as JobRunEvent;
  return renderPayload(event, { id: row.subscription_id, name: row.webhook_name });
}
