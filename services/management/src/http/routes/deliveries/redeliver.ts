import type { Database } from '@runhook/database';
import type { DeliveryQueue } from '@runhook/queue';
import { findDelivery } from '../../../data/deliveries.ts';
import { beginRedelivery, undoRedelivery } from '../../../data/redelivery.ts';
import { deliveryView } from '../../../domain/delivery-view.ts';
import { WRITE_WEBHOOKS } from '../../authorize.ts';
import { type AccountEndpoint, DEADLINE_MS } from '../../endpoint.ts';
import { ConflictError } from '../../errors.ts';
import { deliveryKey, deliveryNotFound, requiredSubscription } from './delivery-key.ts';
import { DELIVERY_PATH } from './paths.ts';

const PENDING = 'The delivery is still pending.';
const INACTIVE = 'The webhook is inactive: activate it to deliver again.';

/**
 * The same delivery, a fresh cycle: an attempt at once and its retries (DESIGN, section 7, "Deliveries"). When the
 * queue does not take it, the delivery is put back as it was.
 */
export function redeliverEndpoint(deps: {
  pool: Database['pool'];
  deliveryQueue: Pick<DeliveryQueue, 'add'>;
  deliveryMaxRetries: number;
}): AccountEndpoint {
  const { pool, deliveryQueue, deliveryMaxRetries } = deps;
  return {
    method: 'POST',
    path: `${DELIVERY_PATH}/redeliver`,
    access: WRITE_WEBHOOKS,
    deadlineMs: 2 * DEADLINE_MS,
    async handle(request) {
      const subscription = await requiredSubscription(pool, request);
      const key = deliveryKey(subscription, request);
      const row = await findDelivery(pool, key);
      if (!row) throw deliveryNotFound();
      const begun = await beginRedelivery(pool, key);
      if (!begun) throw new ConflictError(subscription.active ? PENDING : INACTIVE);
      try {
        const attemptsLeft = 1 + deliveryMaxRetries;
        await deliveryQueue.add([{ deliveryId: key.id, cycle: begun.cycle, delayMs: 0, attemptsLeft }]);
      } catch (error) {
        await undoRedelivery(pool, key.id, begun);
        throw error;
      }
      return { code: 202, data: deliveryView({ ...begun.delivery, event_data: row.event_data }) };
    },
  };
}
