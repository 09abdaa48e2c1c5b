import { queryOptions } from '@tanstack/react-query';
import { pollUnlessLive } from './live.ts';
import { request } from './request.ts';
import { webhooksKey } from './subscriptions.ts';

const SERVICE_STATE = '/api/v3/accounts/{account_id}/webhooks/service-state';
const POLL_MS = 60_000;

/** Whether the database of the service is writable, and which items of the account were set aside. */
export function serviceStateQuery(accountId: number) {
  return queryOptions({
    queryKey: [...webhooksKey(accountId), 'service-state'],
    queryFn: async ({ signal }) =>
      (await request('get', SERVICE_STATE, { path: { account_id: accountId }, signal })).data,
    refetchInterval: pollUnlessLive(POLL_MS),
  });
}
