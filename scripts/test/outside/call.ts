import { createClient, type Row, RunhookError, type Schemas } from '@runhook/client';

const client = createClient({ url: 'http://127.0.0.1:1', token: 'rhs_1', accountId: 1, retriesMax: 0 });
const subscriptions = '/api/v3/accounts/{account_id}/webhooks/subscriptions';

/** Contains type errors only; it is compiled and not run. */
export async function wrong(): Promise<void> {
  // @ts-expect-error no such event
  await client.post(subscriptions, { body: { name: '', event_types: ['job.run.deleted'], client_url: '' } });
  // @ts-expect-error a webhook must be named
  await client.get('/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}');
  // @ts-expect-error no such path
  await client.get('/api/v3/nothing');
}

export const nameOf = (row: Row<typeof subscriptions>): Schemas['Subscription']['name'] => row.name;

try {
  const fields = {
    name: 'Pager',
    event_types: ['job.run.errored' as const],
    client_url: 'https://a.example/',
  };
  const { hmac_secret } = await client.post(subscriptions, { body: fields });
  process.stdout.write(hmac_secret);
} catch (error) {
  if (error instanceof RunhookError)
    process.stdout.write(JSON.stringify([error.status, error.userMessage, error.errors]));
}
