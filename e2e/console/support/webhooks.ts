import type { World } from './world.ts';

/**
 * Creates a webhook for all events of the enterprise account at the world's receiver, unless `fields` override it, and
 * returns its id.
 */
export async function subscribe(world: World, fields: object = {}): Promise<string> {
  const body = {
    name: 'Alerts',
    event_types: ['job.run.started', 'job.run.completed', 'job.run.errored'],
    client_url: `${world.receiver.url}/hook`,
    ...fields,
  };
  const path = `/v3/accounts/${world.accounts.enterprise.id}/webhooks/subscriptions`;
  return (await world.call<{ id: string }>('ada', 'POST', path, body)).id;
}

/** Returns the path of the page, with a leading slash. */
export function webhookPathOf(world: World, id: string): string {
  return `/accounts/${world.accounts.enterprise.id}/settings/webhooks/${id}`;
}

/** Returns the path of the API below `/api`, with a leading slash. */
export function webhookApiOf(world: World, id: string, rest = ''): string {
  const path = `/v3/accounts/${world.accounts.enterprise.id}/webhooks/subscription/${id}`;
  return rest === '' ? path : `${path}/${rest}`;
}
