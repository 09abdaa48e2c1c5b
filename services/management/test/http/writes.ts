import { createId, sampleEvent } from '@runhook/contract';
import type { Receiver } from '@runhook/testing';
import { insertDelivery } from '../deliveries/delivery-rows.ts';
import {
  type CallOptions,
  type Harness,
  PASSWORD,
  SUBSCRIPTION_FIELDS,
  type TestAccount,
} from '../harness.ts';

/** The account of a write, and an endpoint that responds. */
interface WriteWorld {
  harness: Harness;
  account: TestAccount;
  receiver: Receiver;
}

export interface Write extends CallOptions {
  path: string;
}

const runsPath = (world: WriteWorld, suffix = '') => `/api/v2/accounts/${world.account.id}/runs/${suffix}`;
const newJobPath = async (world: WriteWorld, suffix = '') =>
  `/api/v2/accounts/${world.account.id}/jobs/${await world.harness.newJob(world.account)}${suffix}`;
const subscriptionPath = (world: WriteWorld, id: string, suffix = '') =>
  world.account.path(`/subscription/${id}${suffix}`);

const SESSIONS = '/api/v3/profile/sessions';

const newUser = (world: WriteWorld) => world.harness.newUser(world.account, 'developer', ['account_admin']);

export async function newRun(world: WriteWorld): Promise<Write & { body: { job_id: number } }> {
  const body = { job_id: await world.harness.newJob(world.account), engine_version: '1.9.2' };
  return { path: runsPath(world), body };
}

async function startedRunPath(world: WriteWorld): Promise<string> {
  const { path, body } = await newRun(world);
  const { json } = await world.harness.call('POST', path, { token: world.account.token, body });
  return runsPath(world, `${json.data.id}/`);
}

async function triggeredRunPath(world: WriteWorld): Promise<string> {
  const path = await newJobPath(world, '/run/');
  const { json } = await world.harness.call('POST', path, { token: world.account.token });
  return runsPath(world, `${json.data.id}/`);
}

async function failedDelivery(world: WriteWorld) {
  const { id: subscriptionId } = await world.harness.newSubscription(world.account);
  const completedAt = new Date().toISOString();
  const fields = { subscriptionId, accountId: world.account.id, status: 'failed', completedAt };
  return { subscriptionId, ...(await insertDelivery(world.harness.database, fields)) };
}

/** Every route that changes something or sends a sample: pattern, request, and a lock that its work waits for. */
export const WRITES: readonly (readonly [
  route: string,
  prepare: (world: WriteWorld) => Promise<Write>,
  lock: string,
])[] = [
  ['POST /api/v2/accounts/:account_id/runs', newRun, 'runs, events IN SHARE'],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/finish',
    async (world) => ({ path: `${await startedRunPath(world)}finish/`, body: { status: 'errored' } }),
    'runs, events IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/steps',
    async (world) => ({
      path: `${await startedRunPath(world)}steps/`,
      body: { run_steps: [{ index: 1, name: 'Load', status: 'Running' }] },
    }),
    'run_steps IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/artifacts',
    async (world) => {
      const path = await startedRunPath(world);
      await world.harness.call('POST', `${path}finish/`, {
        token: world.account.token,
        body: { status: 'success' },
      });
      return { path: `${path}artifacts/` };
    },
    'runs, events IN SHARE',
  ],
  [
    'PUT /api/v2/accounts/:account_id/runs/:run_id/artifacts/*path',
    async (world) => ({
      path: `${await startedRunPath(world)}artifacts/run_results.json`,
      body: { results: [] },
    }),
    'artifacts IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/jobs/:job_id/run',
    async (world) => ({ path: await newJobPath(world, '/run/'), body: { cause: 'By hand' } }),
    'runs, run_requests IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/jobs/:job_id/rerun',
    async (world) => ({ path: await newJobPath(world, '/rerun/') }),
    'runs, run_requests IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/retry',
    async (world) => {
      const path = await triggeredRunPath(world);
      await world.harness.call('POST', `${path}cancel/`, { token: world.account.token });
      return { path: `${path}retry/` };
    },
    'runs, run_requests IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/cancel',
    async (world) => ({ path: `${await triggeredRunPath(world)}cancel/` }),
    'runs, events IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/claim',
    async (world) => {
      await triggeredRunPath(world);
      return { path: runsPath(world, 'claim/') };
    },
    'runs, run_requests IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/start',
    async (world) => ({
      path: `${await triggeredRunPath(world)}start/`,
      body: { engine_version: '1.9.2' },
    }),
    'runs, events IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/heartbeat',
    async (world) => {
      const path = await triggeredRunPath(world);
      const { json } = await world.harness.call('POST', runsPath(world, 'claim/'), {
        token: world.account.token,
      });
      const headers = { 'lease-token': json.data.lease_token };
      return { path: `${path}heartbeat/`, token: world.account.token, headers };
    },
    'runs, run_requests IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/events',
    async (world) => {
      const identity = { accountId: world.account.id, eventId: createId('event'), now: new Date() };
      return {
        path: `/api/v2/accounts/${world.account.id}/events/`,
        body: { events: [sampleEvent('job.run.errored', identity)] },
      };
    },
    'runs, events IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/jobs',
    async (world) => ({
      path: `/api/v2/accounts/${world.account.id}/jobs/`,
      body: { name: 'Daily', project_name: 'Analytics', environment_name: 'Production' },
    }),
    'jobs IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/jobs/:job_id',
    async (world) => ({ path: await newJobPath(world), body: { name: 'Weekly' } }),
    'jobs IN SHARE',
  ],
  [
    'DELETE /api/v2/accounts/:account_id/jobs/:job_id',
    async (world) => ({ path: await newJobPath(world) }),
    'jobs IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscriptions',
    async (world) => ({ path: world.account.path('/subscriptions'), body: SUBSCRIPTION_FIELDS }),
    'subscriptions IN SHARE',
  ],
  [
    'PUT /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id',
    async (world) => {
      const { id } = await world.harness.newSubscription(world.account);
      return { path: subscriptionPath(world, id), body: { ...SUBSCRIPTION_FIELDS, name: 'Another' } };
    },
    'subscriptions IN SHARE',
  ],
  [
    'DELETE /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id',
    async (world) => ({
      path: subscriptionPath(world, (await world.harness.newSubscription(world.account)).id),
    }),
    'subscriptions IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/duplicate',
    async (world) => ({
      path: subscriptionPath(world, (await world.harness.newSubscription(world.account)).id, '/duplicate'),
    }),
    'subscriptions IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/rotate-secret',
    async (world) => ({
      path: subscriptionPath(
        world,
        (await world.harness.newSubscription(world.account)).id,
        '/rotate-secret',
      ),
    }),
    'subscriptions IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/rotate-signature-key',
    async (world) => {
      const { id } = await world.harness.newSubscription(world.account, { signature_key: 'ed25519' });
      return { path: subscriptionPath(world, id, '/rotate-signature-key') };
    },
    'subscriptions IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/finish-rotation',
    async (world) => {
      const { id } = await world.harness.newSubscription(world.account);
      await world.harness.call('POST', subscriptionPath(world, id, '/rotate-secret'), {
        token: world.account.token,
      });
      return { path: subscriptionPath(world, id, '/finish-rotation') };
    },
    'subscriptions IN SHARE',
  ],
  [
    'GET /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/test',
    async (world) => {
      const { id } = await world.harness.newSubscription(world.account, { client_url: world.receiver.url });
      return { path: subscriptionPath(world, id, '/test') };
    },
    'subscriptions IN ACCESS EXCLUSIVE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/test',
    async (world) => {
      const { id } = await world.harness.newSubscription(world.account, { client_url: world.receiver.url });
      return { path: subscriptionPath(world, id, '/test'), body: { format: 'slack' } };
    },
    'subscriptions IN ACCESS EXCLUSIVE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/test',
    async (world) => ({ path: world.account.path('/test'), body: { client_url: world.receiver.url } }),
    // This route writes nothing and only reads the caller's permission.
    'service_tokens IN ACCESS EXCLUSIVE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/recover',
    async (world) => {
      const { subscriptionId } = await failedDelivery(world);
      return { path: subscriptionPath(world, subscriptionId, '/recover'), body: { since: '2026-01-01' } };
    },
    'recoveries IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/recovery/:recovery_id/cancel',
    async (world) => {
      const { subscriptionId } = await failedDelivery(world);
      const recovery = await world.harness.call('POST', subscriptionPath(world, subscriptionId, '/recover'), {
        token: world.account.token,
        body: { since: '2026-01-01' },
      });
      return { path: subscriptionPath(world, subscriptionId, `/recovery/${recovery.json.data.id}/cancel`) };
    },
    'recoveries IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/delivery/:delivery_id/redeliver',
    async (world) => {
      const { subscriptionId, id } = await failedDelivery(world);
      return { path: subscriptionPath(world, subscriptionId, `/delivery/${id}/redeliver`) };
    },
    'deliveries IN SHARE',
  ],
  [
    'POST /api/v2/users/:user_id/apikey',
    async (world) => {
      const { id, apiKey } = await newUser(world);
      return { path: `/api/v2/users/${id}/apikey`, token: apiKey };
    },
    'users IN SHARE',
  ],
  [
    'POST /api/v3/session',
    async (world) => ({
      path: '/api/v3/session',
      body: { email: (await newUser(world)).email, password: PASSWORD },
    }),
    'console_sessions IN SHARE',
  ],
  [
    'POST /api/v3/session',
    async (world) => ({
      path: '/api/v3/session',
      body: { email: (await newUser(world)).email, password: PASSWORD },
    }),
    // The response names the accounts.
    'accounts IN ACCESS EXCLUSIVE',
  ],
  [
    'DELETE /api/v3/session',
    async (world) => ({ path: '/api/v3/session', headers: await world.harness.signIn(await newUser(world)) }),
    'console_sessions IN SHARE',
  ],
  [
    'DELETE /api/v3/profile/sessions',
    async (world) => ({ path: SESSIONS, headers: await world.harness.signIn(await newUser(world)) }),
    'console_sessions IN SHARE',
  ],
  [
    'DELETE /api/v3/profile/sessions/:session_id',
    async (world) => {
      const headers = await world.harness.signIn(await newUser(world));
      const { json } = await world.harness.call('GET', SESSIONS, { headers });
      return { path: `${SESSIONS}/${json.data[0].id}`, headers };
    },
    'console_sessions IN SHARE',
  ],
  [
    'PUT /api/v3/profile/password',
    async (world) => ({
      path: '/api/v3/profile/password',
      headers: await world.harness.signIn(await newUser(world)),
      body: { current_password: PASSWORD, new_password: 'another password of the test' },
    }),
    'users IN SHARE',
  ],
];

export const isKeyed = (route: string) => route.startsWith('POST') && route.includes(':account_id');
