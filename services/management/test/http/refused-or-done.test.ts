import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, sampleEvent } from '@runhook/contract';
import { eventually, type Receiver, startReceiver } from '@runhook/testing';
import { insertDelivery } from '../deliveries/delivery-rows.ts';
import {
  type Answered,
  type CallOptions,
  type Harness,
  PASSWORD,
  type SecondManagement,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
  UNHURRIED,
} from '../harness.ts';

/** Less than the 5 s after which a statement gives up its wait for a lock, and its transaction with it. */
const REQUEST_MS = 500;

let harness: Harness;
let receiver: Receiver;
/** Another process of the service, which rejects a request after {@link REQUEST_MS}. */
let impatient: SecondManagement;
let account: TestAccount;

beforeAll(async () => {
  receiver = await startReceiver();
  harness = await startHarness({ egressAllowCidrs: ['127.0.0.0/8'] });
  impatient = await harness.startSecond({ deliveryTimeoutMs: 100 }, { ...UNHURRIED, requestMs: REQUEST_MS });
});
beforeEach(async () => {
  account = await harness.newAccount();
});
afterAll(async () => {
  await impatient.close();
  await harness.close();
  await receiver.close();
});

interface Write extends CallOptions {
  path: string;
}

const runsPath = (rest = '') => `/api/v2/accounts/${account.id}/runs/${rest}`;
const subscriptionPath = (id: string, rest = '') => account.path(`/subscription/${id}${rest}`);

const newUser = () => harness.newUser(account, 'developer', ['account_admin']);

async function newRun(): Promise<Write & { body: { job_id: number } }> {
  const body = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
  return { path: runsPath(), body };
}

async function startedRunPath(): Promise<string> {
  const { path, body } = await newRun();
  const { json } = await harness.call('POST', path, { token: account.token, body });
  return runsPath(`${json.data.id}/`);
}

async function failedDelivery() {
  const { id: subscriptionId } = await harness.newSubscription(account);
  const completedAt = new Date().toISOString();
  const fields = { subscriptionId, accountId: account.id, status: 'failed', completedAt };
  return { subscriptionId, ...(await insertDelivery(harness.database, fields)) };
}

/** Every route that changes something: its pattern, what is sent, and a lock that its work has to wait for. */
const WRITES: [string, () => Promise<Write>, string][] = [
  ['POST /api/v2/accounts/:account_id/runs', newRun, 'runs IN SHARE'],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/finish',
    async () => ({ path: `${await startedRunPath()}finish/`, body: { status: 'errored' } }),
    'runs IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/runs/:run_id/artifacts',
    async () => {
      const path = await startedRunPath();
      await harness.call('POST', `${path}finish/`, { token: account.token, body: { status: 'success' } });
      return { path: `${path}artifacts/` };
    },
    'runs IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/events',
    async () => {
      const identity = { accountId: account.id, eventId: createId('event'), now: new Date() };
      return {
        path: `/api/v2/accounts/${account.id}/events/`,
        body: { events: [sampleEvent('job.run.errored', identity)] },
      };
    },
    'events IN SHARE',
  ],
  [
    'POST /api/v2/accounts/:account_id/jobs',
    async () => ({
      path: `/api/v2/accounts/${account.id}/jobs/`,
      body: { name: 'Daily', project_name: 'Analytics', environment_name: 'Production' },
    }),
    'jobs IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscriptions',
    async () => ({ path: account.path('/subscriptions'), body: SUBSCRIPTION_FIELDS }),
    'subscriptions IN SHARE',
  ],
  [
    'PUT /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id',
    async () => {
      const { id } = await harness.newSubscription(account);
      return { path: subscriptionPath(id), body: { ...SUBSCRIPTION_FIELDS, name: 'Another' } };
    },
    'subscriptions IN SHARE',
  ],
  [
    'DELETE /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id',
    async () => ({ path: subscriptionPath((await harness.newSubscription(account)).id) }),
    'subscriptions IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/rotate-secret',
    async () => ({ path: subscriptionPath((await harness.newSubscription(account)).id, '/rotate-secret') }),
    'subscriptions IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/finish-rotation',
    async () => {
      const { id } = await harness.newSubscription(account);
      await harness.call('POST', subscriptionPath(id, '/rotate-secret'), { token: account.token });
      return { path: subscriptionPath(id, '/finish-rotation') };
    },
    'subscriptions IN SHARE',
  ],
  [
    'GET /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/test',
    async () => {
      const { id } = await harness.newSubscription(account, { client_url: receiver.url });
      return { path: subscriptionPath(id, '/test') };
    },
    'subscriptions IN ACCESS EXCLUSIVE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/test',
    async () => ({ path: account.path('/test'), body: { client_url: receiver.url } }),
    // It writes nothing: only whether the caller may is asked of the database.
    'service_tokens IN ACCESS EXCLUSIVE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/recover',
    async () => {
      const { subscriptionId } = await failedDelivery();
      return { path: subscriptionPath(subscriptionId, '/recover'), body: { since: '2026-01-01' } };
    },
    'recoveries IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/recovery/:recovery_id/cancel',
    async () => {
      const { subscriptionId } = await failedDelivery();
      const begun = await harness.call('POST', subscriptionPath(subscriptionId, '/recover'), {
        token: account.token,
        body: { since: '2026-01-01' },
      });
      return { path: subscriptionPath(subscriptionId, `/recovery/${begun.json.data.id}/cancel`) };
    },
    'recoveries IN SHARE',
  ],
  [
    'POST /api/v3/accounts/:account_id/webhooks/subscription/:webhook_id/delivery/:delivery_id/redeliver',
    async () => {
      const { subscriptionId, id } = await failedDelivery();
      return { path: subscriptionPath(subscriptionId, `/delivery/${id}/redeliver`) };
    },
    'deliveries IN SHARE',
  ],
  [
    'POST /api/v2/users/:user_id/apikey',
    async () => {
      const { id, apiKey } = await newUser();
      return { path: `/api/v2/users/${id}/apikey`, token: apiKey };
    },
    'users IN SHARE',
  ],
  [
    'POST /api/v3/session',
    async () => ({ path: '/api/v3/session', body: { email: (await newUser()).email, password: PASSWORD } }),
    'console_sessions IN SHARE',
  ],
  [
    'DELETE /api/v3/session',
    async () => ({ path: '/api/v3/session', headers: await harness.signIn(await newUser()) }),
    'console_sessions IN SHARE',
  ],
];

const isKeyed = (route: string) => route.startsWith('POST') && route.includes(':account_id');
const methodOf = (route: string) => route.split(' ', 1)[0] ?? '';
const isOpen = ({ path }: Write) => path === '/api/v3/session';

function sendTo({ call }: Pick<SecondManagement, 'call'>, route: string, write: Write): Promise<Answered> {
  const { path, ...options } = write;
  return call(methodOf(route), path, isOpen(write) ? options : { token: account.token, ...options });
}

/** Holds a lock until the work has answered, then lets everything that waits for it go on. */
async function whileLocked<T>(lock: string, work: () => Promise<T>): Promise<T> {
  const locker = await harness.database.pool.connect();
  try {
    await locker.query(`BEGIN; LOCK TABLE ${lock} MODE`);
    return await work();
  } finally {
    await locker.query('COMMIT');
    locker.release();
  }
}

const TABLES = ['subscriptions', 'deliveries', 'recoveries', 'events', 'runs', 'jobs', 'console_sessions'];

/** Everything that a write may change. */
async function everything(): Promise<unknown> {
  const { pool } = harness.database;
  const contents = await Promise.all(
    [...TABLES, 'users'].map(async (table) => {
      const { rows } = await pool.query(
        `SELECT to_jsonb(t) AS row FROM ${table} t ORDER BY to_jsonb(t)::text`,
      );
      return [table, rows];
    }),
  );
  return { ...Object.fromEntries(contents), received: receiver.requests.length };
}

test('every route that changes something is among these', () => {
  const writing = harness.endpoints.filter(({ method }) => method !== 'GET');
  const routes = writing.map(({ method, path }) => `${method} ${path}`);
  expect(WRITES.map(([route]) => route)).toEqual(expect.arrayContaining(routes));
});

/** Keys of requests that have not ended. */
const PENDING_KEYS = 'SELECT FROM idempotency_keys WHERE answer_ciphertext IS NULL';
const BUSY_SESSIONS = `
  SELECT FROM pg_stat_activity
  WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`;

/** Waits until no transaction is open and no key is in use: what the rejected requests began has ended. */
async function allEnded(): Promise<void> {
  const { pool } = harness.database;
  await eventually(async () => {
    for (const open of [BUSY_SESSIONS, PENDING_KEYS]) expect((await pool.query(open)).rows).toEqual([]);
  });
}

describe.each(WRITES)('%s', (route, prepare, lock) => {
  test('that was refused because it waited too long changes nothing; with a key, it frees that and is done when it is repeated', async () => {
    const plain = await prepare();
    const headers = { 'idempotency-key': `key of ${route}`.slice(0, 255) };
    const keyed = isKeyed(route) ? { ...(await prepare()), headers } : null;
    const before = await everything();
    const writes = keyed === null ? [plain] : [plain, keyed];
    const answers = await whileLocked(lock, () =>
      Promise.all(writes.map((write) => sendTo(impatient, route, write))),
    );
    expect(answers.map(({ status }) => status)).toEqual(writes.map(() => 503));
    await allEnded();
    expect(await everything()).toEqual(before);
    if (keyed === null) return;
    const repeated = await sendTo(harness, route, keyed);
    expect(repeated.status).toBeLessThan(300);
    expect(repeated.headers.get('idempotent-replay')).toBeNull();
    expect((await sendTo(harness, route, keyed)).headers.get('idempotent-replay')).toBe('true');
  });
});

test('of many that wait for a place and a connection, none that is refused goes out', async () => {
  const write = await newRun();
  const before = await everything();
  const answers = await whileLocked('runs IN SHARE', () =>
    Promise.all(Array.from({ length: 40 }, () => sendTo(impatient, 'POST', write))),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
  await allEnded();
  expect(await everything()).toEqual(before);
});

const COMMITS_WAIT = `
  CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(12); RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER commits_wait AFTER INSERT ON jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()`;

test('whose COMMIT is under way when its time is over is not refused, but answered what was done', async () => {
  const { pool } = harness.database;
  await pool.query(COMMITS_WAIT);
  const body = { name: 'Late', project_name: 'Analytics', environment_name: 'Production' };
  const locker = await pool.connect();
  try {
    await locker.query('BEGIN; SELECT pg_advisory_xact_lock(12)');
    const answer = sendTo(impatient, 'POST', { path: `/api/v2/accounts/${account.id}/jobs/`, body });
    const committing = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
    await eventually(async () => expect((await pool.query(committing)).rows).toHaveLength(1));
    // So that its time is over: no event tells of that.
    await wait(2 * REQUEST_MS);
    await locker.query('COMMIT');
    expect(await answer).toMatchObject({ status: 201, json: { data: { name: 'Late' } } });
  } finally {
    locker.release();
    await pool.query('DROP TRIGGER commits_wait ON jobs');
  }
});
