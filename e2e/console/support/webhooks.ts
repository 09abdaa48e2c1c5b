import type { World } from './world.ts';

/** Subscribes the world's receiver to all events of the enterprise account, unless told otherwise; answers the id. */
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

/** Below the console's root, with its slash. */
export function webhookPathOf(world: World, id: string): string {
  return `/accounts/${world.accounts.enterprise.id}/settings/webhooks/${id}`;
}

/** Below `/api`, with its slash. */
export function webhookApiOf(world: World, id: string, rest = ''): string {
  const path = `/v3/accounts/${world.accounts.enterprise.id}/webhooks/subscription/${id}`;
  return rest === '' ? path : `${path}/${rest}`;
}
