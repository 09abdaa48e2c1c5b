import type { Database } from '@runhook/database';
import type { DeliveryQueue } from '@runhook/queue';
import type { AccountEndpoint } from '../../endpoint.ts';
import { getDeliveryEndpoint } from './get.ts';
import { listDeliveriesEndpoint } from './list.ts';
import { getRecoveryEndpoint, recoverEndpoint } from './recover.ts';
import { redeliverEndpoint } from './redeliver.ts';
import { statisticsEndpoint } from './statistics.ts';

/** The log of deliveries (DESIGN, section 4, "Deliveries API"). */
export function deliveryEndpoints(deps: {
  pool: Database['pool'];
  deliveryQueue: Pick<DeliveryQueue, 'add'>;
  deliveryMaxRetries: number;
}): AccountEndpoint[] {
  return [
    listDeliveriesEndpoint(deps),
    getDeliveryEndpoint(deps),
    redeliverEndpoint(deps),
    recoverEndpoint(deps),
    getRecoveryEndpoint(deps),
    statisticsEndpoint(deps),
  ];
}
