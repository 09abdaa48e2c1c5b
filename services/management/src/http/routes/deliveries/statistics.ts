import type { Database } from '@runhook/database';
import { createKeptStatistics } from '../../../data/kept-statistics.ts';
import { STATISTICS_HOURS_DEFAULT, STATISTICS_HOURS_MAX } from '../../../domain/statistics-view.ts';
import { READ_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { integer, QueryReader } from '../../query-parameters.ts';
import { requiredSubscription } from './delivery-key.ts';
import { STATISTICS_PATH } from './paths.ts';

/** How a subscription's deliveries went, hour by hour, up to now. */
export function statisticsEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  const statistics = createKeptStatistics(pool);
  return {
    method: 'GET',
    path: STATISTICS_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const hours = reader.optional('hours', integer(1, STATISTICS_HOURS_MAX)) ?? STATISTICS_HOURS_DEFAULT;
      reader.check();
      const { id: subscriptionId } = await requiredSubscription(pool, request);
      return { code: 200, data: await statistics({ subscriptionId, hours }) };
    },
  };
}
