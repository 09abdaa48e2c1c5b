import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, startTcpProxy, type TcpProxy } from '@runhook/testing';
import { insertDelivery } from '../deliveries/delivery-rows.ts';
import {
  type ApiResult,
  GENEROUS_TIMEOUTS,
  type Harness,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
} from '../harness.ts';

let proxy: TcpProxy;
let harness: Harness;
let account: TestAccount;
let keys = 0;

beforeAll(async () => {
  const viaProxy = async (databaseUrl: string) => {
    proxy = await startTcpProxy(databaseUrl);
    return { databaseUrl: proxy.url };
  };
  harness = await startHarness(viaProxy, { timeouts: GENEROUS_TIMEOUTS });
});
beforeEach(async () => {
  account = await harness.newAccount();
});
afterEach(() => proxy.restore());
afterAll(async () => {
  await harness.close();
  await proxy.close();
});

interface Post {
  path: string;
  body?: object;
}

const runsPath = (suffix = '') => `/api/v2/accounts/${account.id}/runs/${suffix}`;

async function post({ path, body }: Post, key = `key ${keys}`): Promise<ApiResult> {
  const headers = { 'idempotency-key': key };
  return await harness.call('POST', path, { token: account.token, headers, ...(body && { body }) });
}

async function startedRun(): Promise<string> {
  const body = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
  return (await post({ path: runsPath(), body }, `run ${keys}`)).json.data.id;
}

async function failedDelivery() {
  const { id: subscriptionId } = await harness.newSubscription(account);
  const completedAt = '2026-11-20T10:00:00Z';
  const fields = { subscriptionId, accountId: account.id, status: 'failed', completedAt };
  return { subscriptionId, ...(await insertDelivery(harness.database, fields)) };
}

/** Name of each POST, its request, and the SQL that counts its results. */
const POSTS: [string, () => Promise<Post>, string][] = [
  [
    'the start of a run',
    async () => ({
      path: runsPath(),
      body: { job_id: await harness.newJob(account), engine_version: '1.9.2' },
    }),
    `SELECT (SELECT count(*) FROM runs WHERE account_id = $1), (SELECT count(*) FROM events WHERE account_id = $1) AS e`,
  ],
  [
    'the finish of a run',
    async () => ({ path: runsPath(`${await startedRun()}/finish/`), body: { status: 'errored' } }),
    `SELECT count(*) FROM events WHERE account_id = $1 AND event_type = 'job.run.errored'`,
  ],
  [
    'the artifacts of a run',
    async () => {
      const path = runsPath(`${await startedRun()}/finish/`);
      await post({ path, body: { status: 'success' } }, `finish ${keys}`);
      return { path: path.replace('finish', 'artifacts') };
    },
    `SELECT count(*) FROM events WHERE account_id = $1 AND event_type = 'job.run.completed'`,
  ],
  [
    'a new job',
    async () => ({
      path: `/api/v2/accounts/${account.id}/jobs/`,
      body: { name: 'Daily', project_name: 'Analytics', environment_name: 'Production' },
    }),
    'SELECT count(*) FROM jobs WHERE account_id = $1',
  ],
  [
    'a new subscription',
    async () => ({ path: account.path('/subscriptions'), body: SUBSCRIPTION_FIELDS }),
    'SELECT count(*) FROM subscriptions WHERE account_id = $1',
  ],
  [
    'a redelivery',
    async () => {
      const { subscriptionId, id } = await failedDelivery();
      return { path: account.path(`/subscription/${subscriptionId}/delivery/${id}/redeliver`) };
    },
    `SELECT count(*) FROM deliveries WHERE account_id = $1 AND status = 'pending'`,
  ],
  [
    'a recovery',
    async () => {
      const { subscriptionId } = await failedDelivery();
      return {
        path: account.path(`/subscription/${subscriptionId}/recover`),
        body: { since: '2026-01-01' },
      };
    },
    `SELECT count(*) FROM recoveries r JOIN subscriptions s ON s.id = subscription_id WHERE account_id = $1`,
  ],
];

async function countedBy(sql: string): Promise<object> {
  return (await harness.database.pool.query(sql, [account.id])).rows[0];
}

describe.each(POSTS)('repeating %s', (_, prepare, countSql) => {
  beforeEach(() => {
    keys += 1;
  });

  test('whose COMMIT result was lost returns the stored response and does not repeat the work', async () => {
    const request = await prepare();
    proxy.dropResponsesTo('COMMIT');
    expect((await post(request)).status).toBe(503);
    await proxy.restore();
    const effects = await countedBy(countSql);
    const repeatResponse = await eventually(async () => {
      const response = await post(request);
      expect(response.status).toBeLessThan(300);
      return response;
    });
    expect(repeatResponse.headers.get('idempotent-replay')).toBe('true');
    expect(await countedBy(countSql)).toEqual(effects);
    expect(Object.values(effects).every((count) => Number(count) === 1)).toBe(true);
  });
});

test('a request that hung while another one took over its Idempotency-Key changes nothing', async () => {
  keys += 1;
  const body = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
  const locker = await harness.database.pool.connect();
  try {
    await locker.query('BEGIN; LOCK TABLE runs IN SHARE MODE');
    const firstPost = post({ path: runsPath(), body });
    const { pool } = harness.database;
    const claimed = `UPDATE idempotency_keys SET claimed_until = now() WHERE response_ciphertext IS NULL RETURNING claim`;
    const [claim] = await eventually(async () => {
      const { rows } = await pool.query<{ claim: string }>(claimed);
      expect(rows).toHaveLength(1);
      return rows.map((row) => row.claim);
    });
    const second = post({ path: runsPath(), body });
    await eventually(async () =>
      expect((await pool.query('SELECT FROM idempotency_keys WHERE claim = $1', [claim])).rows).toEqual([]),
    );
    await locker.query('COMMIT');
    const responses = await Promise.all([firstPost, second]);
    expect(responses.map(({ status }) => status)).toEqual([409, 201]);
  } finally {
    locker.release();
  }
  const sql = 'SELECT count(*)::int AS count FROM runs WHERE account_id = $1';
  expect(await countedBy(sql)).toEqual({ count: 1 });
});

/** Waits until the keys without a stored response are released without further requests. */
async function expectKeysFreed(): Promise<void> {
  await eventually(async () => {
    const { rows } = await harness.database.pool.query(
      'SELECT FROM idempotency_keys WHERE response_ciphertext IS NULL',
    );
    expect(rows).toEqual([]);
  });
}

async function expectEffectOfFirst(request: Post): Promise<void> {
  const { status, headers } = await eventually(async () => {
    const response = await post(request);
    expect(response.status).not.toBe(503);
    return response;
  });
  expect([status, headers.get('idempotent-replay')]).toEqual([201, null]);
}

const WAITING_BACKENDS = `
  SELECT FROM pg_locks JOIN pg_database d ON d.oid = database
  WHERE NOT granted AND relation = 'runs'::regclass AND datname = current_database()`;

describe('the Idempotency-Key of a request that ended without a commit', () => {
  beforeEach(() => {
    keys += 1;
  });

  test('is released when the database recovers from an outage during the work', async () => {
    const request = {
      path: runsPath(),
      body: { job_id: await harness.newJob(account), engine_version: '1.9.2' },
    };
    const locker = await harness.database.pool.connect();
    try {
      await locker.query('BEGIN; LOCK TABLE runs IN SHARE MODE');
      const firstPost = post(request);
      await eventually(async () => expect((await locker.query(WAITING_BACKENDS)).rows).toHaveLength(1));
      await proxy.cut();
      expect((await firstPost).status).toBe(503);
    } finally {
      await locker.query('ROLLBACK');
      locker.release();
    }
    await proxy.restore();
    await expectKeysFreed();
    await expectEffectOfFirst(request);
  });

  test('is released when the database recovers from an outage during the claim', async () => {
    const request = { path: account.path('/subscriptions'), body: SUBSCRIPTION_FIELDS };
    proxy.dropResponsesTo('INSERT INTO idempotency_keys');
    expect((await post(request)).status).toBe(503);
    await proxy.restore();
    await expectKeysFreed();
    await expectEffectOfFirst(request);
  });
});

test('the Idempotency-Key of a request rejected at its deadline is released while its work still waits', async () => {
  keys += 1;
  const shortDeadline = await harness.startSecond({}, { ...GENEROUS_TIMEOUTS, requestMs: 1_000 });
  const locker = await harness.database.pool.connect();
  try {
    await locker.query('BEGIN; LOCK TABLE runs IN SHARE MODE');
    const body = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
    const headers = { 'idempotency-key': `key ${keys}` };
    const rejected = await shortDeadline.call('POST', runsPath(), { token: account.token, headers, body });
    expect(rejected.status).toBe(503);
    await expectKeysFreed();
    expect((await locker.query(WAITING_BACKENDS)).rows).toHaveLength(1);
  } finally {
    await locker.query('ROLLBACK');
    locker.release();
    await shortDeadline.close();
  }
});
