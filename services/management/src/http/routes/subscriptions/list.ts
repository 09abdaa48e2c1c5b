import type { Database } from '@runhook/database';
import { listSubscriptions } from '../../../data/subscriptions.ts';
import { subscriptionView } from '../../../domain/subscription-view.ts';
import { READ_WEBHOOKS } from '../../authorize.ts';
import type { AccountEndpoint } from '../../endpoint.ts';
import { pageExtra } from '../../page-extra.ts';
import { QueryReader, searchText, trueOrFalse } from '../../query-parameters.ts';
import { SUBSCRIPTIONS_PATH } from './paths.ts';

/** Spec, section 4.1; `search` and `active` narrow it. */
export function listSubscriptionsEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTIONS_PATH,
    access: READ_WEBHOOKS,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      const filters = {
        active: reader.optional('active', trueOrFalse),
        search: reader.optional('search', searchText),
      };
      reader.check();
      const { rows, totalCount } = await listSubscriptions(pool, { accountId: account.id, filters, ...page });
      return { code: 200, data: rows.map(subscriptionView), extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}
