import { EVENT_TYPES } from '@runhook/contract';
import { type Api, ApiFailed } from './api.ts';
import type { CredentialsStore } from './credentials.ts';

interface Subscription {
  id: string;
  name: string;
  description: string;
  event_types: string[];
  job_ids: string[];
  client_url: string;
  active: boolean;
}

export interface DemoSubscription {
  id: string;
  hmacSecret: string;
  outcome: 'created' | 'kept' | 'updated';
}

/**
 * The demo's subscription, through the API: made once, then kept. One that somebody deleted is made anew; one that
 * would not bring every event to `clientUrl` is set to do so again, its name and description left alone.
 */
export async function ensureSubscription(
  api: Api,
  store: CredentialsStore,
  clientUrl: string,
): Promise<DemoSubscription> {
  const kept = store.credentials.subscription;
  const found = kept === undefined ? null : await find(api, kept.id);
  if (kept !== undefined && found !== null) {
    if (bringsEverything(found, clientUrl)) return { ...kept, outcome: 'kept' };
    const { name, description } = found;
    await api.put(`/subscription/${kept.id}`, { name, description, ...wanted(clientUrl) });
    return { ...kept, outcome: 'updated' };
  }
  const { id, hmac_secret: hmacSecret } = await api.post<{ id: string; hmac_secret: string }>(
    '/subscriptions',
    {
      name: 'Demo receiver',
      description: 'Made by npm start for its demonstration.',
      ...wanted(clientUrl),
    },
  );
  store.credentials.subscription = { id, hmacSecret };
  store.save();
  return { id, hmacSecret, outcome: 'created' };
}

function wanted(clientUrl: string) {
  return { client_url: clientUrl, event_types: EVENT_TYPES, job_ids: [], active: true };
}

function bringsEverything(found: Subscription, clientUrl: string): boolean {
  const { client_url, active, job_ids, event_types } = found;
  const hasEveryType = EVENT_TYPES.every((type) => event_types.includes(type));
  return client_url === clientUrl && active && job_ids.length === 0 && hasEveryType;
}

async function find(api: Api, id: string): Promise<Subscription | null> {
  try {
    return await api.get<Subscription>(`/subscription/${id}`);
  } catch (error) {
    if (error instanceof ApiFailed && error.status === 404) return null;
    throw error;
  }
}
