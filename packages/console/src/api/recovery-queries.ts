import { queryOptions } from '@tanstack/react-query';
import { subscriptionApi } from './account-path.ts';
import { logKey, type WebhookKey } from './delivery-queries.ts';
import { request } from './request.ts';
import type { Recovery } from './types.ts';

const POLL_MS = 1_000;

/** How far a recovery is; asked for again until it has ended. */
export function recoveryQuery(key: WebhookKey, recoveryId: string) {
  return queryOptions({
    queryKey: [...logKey(key), 'recovery', recoveryId],
    queryFn: async ({ signal }) => {
      const path = `${subscriptionApi(key.accountId, key.webhookId)}/recovery/${recoveryId}`;
      return (await request<Recovery>(path, { signal })).data;
    },
    refetchInterval: ({ state }) => (state.data && state.data.status !== 'running' ? false : POLL_MS),
  });
}

export interface RecoveryRequest {
  /** Microseconds since the epoch, as digits. */
  since: string;
  until: string;
  status: 'failed' | 'cancelled';
}

export async function startRecovery(key: WebhookKey, body: RecoveryRequest): Promise<Recovery> {
  const path = `${subscriptionApi(key.accountId, key.webhookId)}/recover`;
  return (await request<Recovery>(path, { method: 'POST', body })).data;
}
