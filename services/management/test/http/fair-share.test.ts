import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@runhook/testing';
import { type ApiResult, type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ apiConcurrencyPerAccount: 200 });
});
afterAll(() => harness.close());

const post = ({ id, token }: TestAccount, path: string, body: object) =>
  harness.call('POST', `/api/v2/accounts/${id}/${path}`, { token, body });

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${harness.operationsOrigin}/metrics`)).text();
  return Number(new RegExp(`^${name}\\{.*\\} (.+)$`, 'm').exec(text)?.[1]);
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
    const rejected = await post(flood, 'runs/1/finish/', { status: 'success' });
    expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await metric('runhook_http_requests_rejected_total')).toBe(1);
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
