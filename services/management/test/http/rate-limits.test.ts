import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestQueueUrl, queueBackends, startTcpProxy } from '@runhook/testing';
import { failure, GENEROUS_TIMEOUTS, type Harness, startHarness, type TestAccount } from '../harness.ts';

const LIMIT = 10;
const TOO_MANY = { status: 429, json: failure(429, 'Too many requests.') };

describe.each(queueBackends())('the rate limit of requests, counted on $name', (backend) => {
  let harness: Harness;
  let account: TestAccount;

  beforeAll(async () => {
    harness = await startHarness(async (databaseUrl) => ({
      queueUrl: await createTestQueueUrl(backend, databaseUrl),
      apiRateLimitPerMinute: LIMIT,
      idempotencyKeysPerDay: LIMIT,
      jobsPerAccount: 2,
    }));
  });

  beforeEach(async () => {
    account = await harness.newAccount();
  });

  afterAll(() => harness.close());

  const list = (of: TestAccount, token = of.token, call = harness.call) =>
    call('GET', of.path('/subscriptions'), { token });
  const statuses = async (calls: ReturnType<Harness['call']>[]) =>
    (await Promise.all(calls)).map(({ status }) => status).sort();
  const exhaustLimit = (of: TestAccount) => statuses(Array.from({ length: LIMIT }, () => list(of)));

  const createJob = (key?: string) =>
    harness.call('POST', `/api/v2/accounts/${account.id}/jobs/`, {
      token: account.token,
      body: { name: 'Daily', project_name: 'Analytics', environment_name: 'Production' },
      headers: key === undefined ? {} : { 'idempotency-key': key },
    });

  test('permits the configured number of requests with an Idempotency-Key in a day, repeats included', async () => {
    expect((await createJob('first')).status).toBe(201);
    for (let count = 1; count < LIMIT; count++) expect((await createJob('first')).status).toBe(201);
    expect(await createJob('first')).toMatchObject(TOO_MANY);
    expect((await createJob()).status).toBe(201);
  });

  test('permits the configured number of jobs of an account', async () => {
    expect((await createJob()).status).toBe(201);
    expect((await createJob()).status).toBe(201);
    expect(await createJob()).toMatchObject({
      status: 409,
      json: failure(409, 'The account has 2 jobs, the maximum.'),
    });
  });

  test('permits the configured number for each account and returns Retry-After', async () => {
    expect(await exhaustLimit(account)).toEqual(new Array(LIMIT).fill(200));
    const rejected = await list(account);
    expect(rejected).toMatchObject(TOO_MANY);
    const retryAfter = Number(rejected.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(0);
    expect(retryAfter).toBeLessThanOrEqual(60);
    expect((await list(await harness.newAccount())).status).toBe(200);
  });

  test('is shared by all processes, also for concurrent requests', async () => {
    const second = await harness.startSecond();
    const calls = Array.from({ length: 2 * LIMIT }, (_, index) =>
      list(account, account.token, index % 2 === 0 ? harness.call : second.call),
    );
    const acceptedStatuses = (await statuses(calls)).filter((status) => status === 200);
    expect(acceptedStatuses).toHaveLength(LIMIT);
    expect(await list(account, account.token, second.call)).toMatchObject(TOO_MANY);
    expect(await list(account)).toMatchObject(TOO_MANY);
    await second.close();
  });

  test('is shared by all callers of the account and counts their rejected requests', async () => {
    const reader = await harness.newToken(account, ['read_only']);
    const user = await harness.newUser(account, 'it', []);
    const headers = await harness.signIn(user);
    const calls = [
      harness.call('POST', account.path('/subscriptions'), { token: reader, body: {} }),
      harness.call('GET', account.path('/subscription/wsu_x'), { token: user.apiKey }),
      harness.call('GET', account.path('/subscriptions'), { headers }),
    ];
    expect(await statuses(calls)).toEqual([200, 403, 404]);
    await statuses(Array.from({ length: LIMIT - 3 }, () => list(account)));
    expect(await list(account, user.apiKey)).toMatchObject(TOO_MANY);
  });

  test('cannot be used up by callers without access to the account', async () => {
    const otherAccount = await harness.newAccount();
    for (let calls = 0; calls < LIMIT; calls++) {
      expect((await list(account, otherAccount.token)).status).toBe(403);
      expect((await list(account, 'rhs_x')).status).toBe(401);
    }
    expect(await list(otherAccount)).toMatchObject(TOO_MANY);
    expect((await list(account)).status).toBe(200);
  });

  test('belongs to the user for paths without an account', async () => {
    const user = await harness.newUser(account, 'it', []);
    const listOwnAccounts = () => harness.call('GET', '/api/v2/accounts/', { token: user.apiKey });
    expect(await statuses(Array.from({ length: LIMIT }, listOwnAccounts))).toEqual(
      new Array(LIMIT).fill(200),
    );
    expect(await listOwnAccounts()).toMatchObject(TOO_MANY);
    const rotation = await harness.call('POST', `/api/v2/users/${user.id}/apikey/`, { token: user.apiKey });
    expect(rotation).toMatchObject(TOO_MANY);
    expect((await list(account, user.apiKey)).status).toBe(200);
  });

  test('does not apply to jobs and runs and does not count them', async () => {
    const { token } = account;
    const jobs = () => harness.call('GET', `/api/v2/accounts/${account.id}/jobs/`, { token });
    const start = () => harness.call('POST', `/api/v2/accounts/${account.id}/runs/`, { token, body: {} });
    await statuses(Array.from({ length: LIMIT }, jobs));
    expect(await exhaustLimit(account)).toEqual(new Array(LIMIT).fill(200));
    expect(await list(account)).toMatchObject(TOO_MANY);
    expect((await jobs()).status).toBe(200);
    expect((await start()).status).toBe(400);
  });
});

const redis = queueBackends().filter(({ name }) => name === 'Redis');

(redis.length > 0 ? describe : describe.skip)('while the Redis of the counters is unavailable', () => {
  test('each process counts separately', async () => {
    const proxy = await startTcpProxy(await createTestQueueUrl({ name: 'Redis' }, ''));
    const harness = await startHarness({ queueUrl: proxy.url, apiRateLimitPerMinute: LIMIT });
    const { token, path } = await harness.newAccount();
    const list = () => harness.call('GET', path('/subscriptions'), { token });
    expect((await list()).status).toBe(200);

    await proxy.cut();
    for (let calls = 0; calls < LIMIT; calls++) expect((await list()).status).toBe(200);
    expect(await list()).toMatchObject(TOO_MANY);
    await harness.close();
    await proxy.close();
  });

  test('a Redis that accepts connections but does not respond fails no request', async () => {
    const proxy = await startTcpProxy(await createTestQueueUrl({ name: 'Redis' }, ''));
    // The timeout of production, since the test shows that it expires.
    const { countMs: _, ...timeouts } = GENEROUS_TIMEOUTS;
    const harness = await startHarness({ queueUrl: proxy.url }, { timeouts });
    const { token, path } = await harness.newAccount();
    const list = () => harness.call('GET', path('/subscriptions'), { token });
    expect((await list()).status).toBe(200);
    proxy.stall();
    expect((await list()).status).toBe(200);
    await proxy.cut();
    await harness.close();
  });
});
