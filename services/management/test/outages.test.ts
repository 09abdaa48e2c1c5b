import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  queueBackends,
  startTcpProxy,
  type TcpProxy,
  type TestDatabase,
} from '@runhook/testing';
import { insertDelivery } from './deliveries/delivery-rows.ts';
import {
  failure,
  GENEROUS_TIMEOUTS,
  type Harness,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
} from './harness.ts';

const UNAVAILABLE = failure(503, 'The service is temporarily unavailable.');

async function expectUnavailable(call: () => ReturnType<Harness['call']>): Promise<void> {
  const { status, headers, json } = await call();
  expect({ status, json }).toEqual({ status: 503, json: UNAVAILABLE });
  expect(headers.get('retry-after')).toBe('5');
}

describe('while the database is unavailable', () => {
  let proxy: TcpProxy;
  let harness: Harness;
  let account: TestAccount;

  beforeAll(async () => {
    const viaProxy = async (databaseUrl: string) => {
      proxy = await startTcpProxy(databaseUrl);
      return { databaseUrl: proxy.url };
    };
    // The timeouts of production, since the test shows that they expire.
    harness = await startHarness(viaProxy, { timeouts: {} });
    account = await harness.newAccount();
  });

  afterEach(() => proxy.restore());

  afterAll(async () => {
    await harness.close();
    await proxy.close();
  });

  const list = async () =>
    await harness.call('GET', account.path('/subscriptions'), { token: account.token });
  const create = async () => {
    const { token } = account;
    return await harness.call('POST', account.path('/subscriptions'), { token, body: SUBSCRIPTION_FIELDS });
  };
  const createJob = async () => {
    const body = { name: 'Daily', project_name: 'Analytics', environment_name: 'Production' };
    const { token } = account;
    return await harness.call('POST', `/api/v2/accounts/${account.id}/jobs/`, { token, body });
  };

  async function expectRecovery(): Promise<void> {
    await proxy.restore();
    await eventually(async () => expect((await list()).status).toBe(200));
    expect((await create()).status).toBe(201);
    expect((await createJob()).status).toBe(201);
  }

  test('requests get a 503 at once if it refuses connections, and succeed after it recovers', async () => {
    expect((await list()).status).toBe(200);
    await proxy.cut();
    for (const call of [list, create, createJob]) await expectUnavailable(call);
    await expectRecovery();
  });

  test('requests get a 503 if it accepts connections but does not respond', async () => {
    expect((await list()).status).toBe(200);
    proxy.stall();
    await Promise.all([list, create, createJob].map((call) => expectUnavailable(call)));
    await proxy.cut();
    await expectRecovery();
  });

  test('the readiness probe fails and the liveness probe succeeds', async () => {
    await proxy.cut();
    const readyResponse = await harness.call('GET', '/readyz');
    expect(readyResponse).toMatchObject({
      status: 503,
      json: { ok: false, checks: { database: { ok: false } } },
    });
    expect((await harness.call('GET', '/healthz')).status).toBe(200);
    await proxy.restore();
    await eventually(async () => expect((await harness.call('GET', '/readyz')).status).toBe(200));
  });
});

describe.each(queueBackends())('while the queue is unavailable, on $name', (backend) => {
  let queueDatabase: TestDatabase;
  let proxy: TcpProxy;
  let harness: Harness;
  let account: TestAccount;

  beforeAll(async () => {
    queueDatabase = await createTestDatabase();
    proxy = await startTcpProxy(await createTestQueueUrl(backend, queueDatabase.url));
    harness = await startHarness(
      { queueUrl: proxy.url },
      { timeouts: { databaseMs: GENEROUS_TIMEOUTS.databaseMs } },
    );
    account = await harness.newAccount();
  });

  afterEach(() => proxy.restore());

  afterAll(async () => {
    await harness.close();
    await proxy.close();
    await queueDatabase.drop();
  });

  async function rowOf(id: string) {
    const sql =
      'SELECT status, trigger, cycle, next_attempt_at <= now() AS due FROM deliveries WHERE id = $1';
    return (await harness.database.pool.query(sql, [id])).rows[0];
  }

  test('a redelivery is a 202 and on record for the reconciler', async () => {
    const { id: subscriptionId } = await harness.newSubscription(account);
    const insert = async () => {
      const times = { completedAt: '2026-11-20T10:00:00.123456Z' };
      const fields = { subscriptionId, accountId: account.id, reason: 'why', ...times };
      return (await insertDelivery(harness.database, fields)).id;
    };
    const redeliver = async (id: string) => {
      const path = account.path(`/subscription/${subscriptionId}/delivery/${id}/redeliver`);
      return await harness.call('POST', path, { token: account.token });
    };
    // The first outage precedes any connection to the queue; the second one breaks a connection.
    for (let outage = 1; outage <= 2; outage++) {
      const id = await insert();
      await proxy.cut();
      expect(await redeliver(id)).toMatchObject({ status: 202, json: { data: { id, status: 'pending' } } });
      expect(await rowOf(id)).toEqual({ status: 'pending', trigger: 'manual', cycle: 6, due: true });
      expect((await redeliver(id)).status).toBe(409);
      await proxy.restore();
      const another = await insert();
      expect((await redeliver(another)).status).toBe(202);
    }
  });

  test('the service stays ready, reports the queue, and commits runs and webhooks', async () => {
    const job_id = await harness.newJob(account);
    await proxy.cut();
    await harness.newSubscription(account);
    // A check has two seconds, which a busy machine may exceed.
    await eventually(async () =>
      expect(await harness.call('GET', '/readyz')).toMatchObject({
        status: 200,
        json: { ok: true, checks: { queue: { ok: false, required: false }, database: { ok: true } } },
      }),
    );
    const { events } = await harness.rowCounts();
    const reported = await harness.call('POST', `/api/v2/accounts/${account.id}/runs/`, {
      token: account.token,
      body: { job_id, engine_version: '1.9.2' },
    });
    expect(reported.status).toBe(201);
    expect((await harness.rowCounts()).events).toBe(Number(events) + 1);
    expect(await harness.relayWaiting()).toBe(1);
    await proxy.restore();
    await eventually(async () => expect(await harness.relayWaiting()).toBe(0));
  });
});
