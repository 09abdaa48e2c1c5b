import { queryOptions } from '@tanstack/react-query';
import { activityKey, pollRuns } from './activity.ts';
import { request } from './request.ts';

const UNNOTIFIED = '/api/v3/accounts/{account_id}/webhooks/run/{run_id}/unnotified';

/** Maximum page size of the API. */
const SHOWN_MAX = 100;

/** Returns the webhooks without a delivery of an event of the run, with the reasons, and their total number. */
export function unnotifiedQuery(accountId: number, runId: number) {
  const path = { account_id: accountId, run_id: runId };
  return queryOptions({
    queryKey: [...activityKey(accountId), 'run', runId, 'unnotified'],
    queryFn: async ({ signal }) => {
      const { data, extra } = await request('get', UNNOTIFIED, { path, query: { limit: SHOWN_MAX }, signal });
      return { webhooks: data, totalCount: extra.pagination.total_count };
    },
    refetchInterval: pollRuns,
  });
}
