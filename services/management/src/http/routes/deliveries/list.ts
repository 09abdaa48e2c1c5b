import { EVENT_TYPES, integerIdFromText } from '@runhook/contract';
import type { Database } from '@runhook/database';
import { createClosedHours } from '../../../data/closed-hours.ts';
import type { DeliveryFilters } from '../../../data/delivery-filters.ts';
import { listDeliveries } from '../../../data/delivery-list.ts';
import { DELIVERY_STATUSES, deliveryView } from '../../../domain/delivery-view.ts';
import { MOMENT_PROBLEM, microsFromText } from '../../../domain/time-text.ts';
import { READ_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { pageExtra } from '../../page-extra.ts';
import { oneOf, QueryReader, readBy } from '../../query-parameters.ts';
import { requiredSubscription } from './delivery-key.ts';
import { DELIVERIES_PATH } from './paths.ts';

const id = readBy(integerIdFromText, 'must be an id: digits');
const moment = readBy(microsFromText, MOMENT_PROBLEM);

/** The log of a subscription (DESIGN, section 4, "Deliveries API"), newest first. */
export function listDeliveriesEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  const closedHours = createClosedHours(pool);
  return {
    method: 'GET',
    path: DELIVERIES_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const page = reader.page();
      const filters = readFilters(reader);
      reader.check();
      const { id: subscriptionId } = await requiredSubscription(pool, request);
      const { rows, totalCount } = await listDeliveries(pool, closedHours, {
        subscriptionId,
        filters,
        ...page,
      });
      return { code: 200, data: rows.map(deliveryView), extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}

function readFilters(reader: QueryReader): DeliveryFilters {
  return {
    status: reader.optional('status', oneOf(DELIVERY_STATUSES)),
    eventType: reader.optional('event_type', oneOf(EVENT_TYPES)),
    runId: reader.optional('run_id', id),
    since: reader.optional('since', moment),
    until: reader.optional('until', moment),
  };
}
