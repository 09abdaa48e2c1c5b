import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually, type Receiver, startReceiver } from '@runhook/testing';
import { type ApiResult, type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  harness = await startHarness({ apiConcurrencyPerAccount: 200, egressAllowCidrs: ['127.0.0.0/8'] });
});
afterAll(async () => {
  await harness.close();
  await receiver.close();
});

const post = ({ id, token }: TestAccount, path: string, body: object) =>
  harness.call('POST', `/api/v2/accounts/${id}/${path}`, { token, body });

const get = ({ token }: TestAccount, path: string) => harness.call('GET', path, { token });

/** Returns the value of a metric; `budget` selects one by its label. */
async function metric(name: string, budget = ''): Promise<number> {
  const text = await (await fetch(`${harness.operationsOrigin}/metrics`)).text();
  return Number(new RegExp(`^${name}\\{.*${budget}.*\\} (.+)$`, 'm').exec(text)?.[1]);
}

const rejected = (budget: string) => metric('runhook_http_requests_rejected_total', `budget="${budget}"`);

/** Counts responses by status. */
function countStatuses(responses: readonly ApiResult[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test('an account whose requests all hang does not delay others and cannot exceed its limit of requests in flight', async () => {
  const flood = await harness.newAccount();
  const otherAccount = await harness.newAccount();
  const run = { job_id: await harness.newJob(flood), run_id: 1, engine_version: '1.9.2' };
  const otherRun = { job_id: await harness.newJob(otherAccount), engine_version: '1.9.2' };
  expect((await post(flood, 'runs/', run)).status).toBe(201);
  const locker = await harness.database.pool.connect();
  const hanging: Promise<ApiResult>[] = [];
  try {
    await locker.query('BEGIN');
    await locker.query('SELECT FROM runs WHERE account_id = $1 FOR UPDATE', [flood.id]);
    for (let index = 0; index < 200; index++)
      hanging.push(post(flood, 'runs/1/finish/', { status: 'success' }));
    await eventually(async () => expect(await metric('runhook_http_requests_waiting')).toBe(194));
    expect((await post(otherAccount, 'runs/', otherRun)).status).toBe(201);
    const beyond = await post(flood, 'runs/1/finish/', { status: 'success' });
    expect([beyond.status, beyond.headers.get('retry-after')]).toEqual([
      429,
      expect.stringMatching(/^[123]$/),
    ]);
    expect(await rejected('requests')).toBe(1);
    expect((await post(otherAccount, 'runs/', otherRun)).status).toBe(201);
  } finally {
    await locker.query('COMMIT');
    locker.release();
  }
  const responses = await Promise.all(hanging);
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  expect(await metric('runhook_http_requests_waiting')).toBe(0);
});

test('all of many concurrent creates of jobs in the same new project succeed', async () => {
  const account = await harness.newAccount();
  const body = { name: 'Daily', project_name: 'Analytics', environment_name: 'Production' };
  const responses = await Promise.all(Array.from({ length: 200 }, () => post(account, 'jobs/', body)));
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([201]));
  expect(new Set(responses.map(({ json }) => json.data.id)).size).toBe(200);
  expect(new Set(responses.map(({ json }) => json.data.project_id)).size).toBe(1);
});

test('an account has 8 tests of endpoints at once; other requests and other accounts do not wait for them', async () => {
  const [flood, otherAccount] = [await harness.newAccount(), await harness.newAccount()];
  const responses: (() => void)[] = [];
  receiver.respondWith(() => new Promise((resolve) => responses.push(() => resolve({ status: 200 }))));
  const client_url = receiver.url;
  const sendTest = (account: TestAccount) =>
    harness.call('POST', account.path('/test'), { token: account.token, body: { client_url } });
  const tests = Array.from({ length: 100 }, () => sendTest(flood));
  await eventually(async () => expect(await rejected('endpoint_tests')).toBe(92));
  expect((await get(flood, flood.path('/subscriptions'))).status).toBe(200);
  const otherTest = sendTest(otherAccount);
  await eventually(async () => expect(responses).toHaveLength(9));
  for (const respond of responses) respond();
  expect((await otherTest).status).toBe(200);
  expect(countStatuses(await Promise.all(tests))).toEqual({ 200: 8, 429: 92 });
});

test('an account has one slow read at once, and 20 in flight; authentication and other accounts do not wait for them', async () => {
  const [flood, otherAccount] = [await harness.newAccount(), await harness.newAccount()];
  const list = ({ id }: TestAccount) => `/api/v2/accounts/${id}/runs/?search=x`;
  const rerun = `/api/v2/accounts/${flood.id}/jobs/${await harness.newJob(flood)}/rerun/`;
  const locker = await harness.database.pool.connect();
  const { pool } = harness.database;
  const waitingForLock = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  let reads: Promise<ApiResult>[] = [];
  try {
    await locker.query('BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE');
    reads = Array.from({ length: 50 }, () => get(flood, list(flood)));
    await eventually(async () => expect(await rejected('slow_reads')).toBe(30));
    await eventually(async () => expect((await pool.query(waitingForLock)).rowCount).toBe(1));
    expect((await get(flood, flood.path('/subscriptions'))).status).toBe(200);
    expect((await harness.call('POST', rerun, { token: flood.token })).status).toBe(429);
    const otherRead = get(otherAccount, list(otherAccount));
    await eventually(async () => expect((await pool.query(waitingForLock)).rowCount).toBe(2));
    reads.push(otherRead);
  } finally {
    await locker.query('COMMIT');
    locker.release();
  }
  expect(countStatuses(await Promise.all(reads))).toEqual({ 200: 21, 429: 30 });
});
