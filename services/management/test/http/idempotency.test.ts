import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { insertDelivery } from '../deliveries/delivery-rows.ts';
import { failure, type Harness, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let keys = 0;
let key: string;

beforeAll(async () => {
  harness = await startHarness();
});
beforeEach(async () => {
  account = await harness.newAccount();
  key = `key ${++keys}`;
});
afterAll(() => harness.close());

interface PostOptions {
  body?: unknown;
  token?: string;
  key?: string;
  call?: Harness['call'];
}

const post = async (path: string, { body, token = account.token, ...options }: PostOptions = {}) =>
  await (options.call ?? harness.call)('POST', path, {
    token,
    ...(body === undefined ? {} : { body }),
    headers: { 'idempotency-key': options.key ?? key },
  });
const create = async (options: PostOptions = {}) =>
  await post(account.path('/subscriptions'), { body: SUBSCRIPTION_FIELDS, ...options });

async function subscriptionCount(): Promise<number> {
  const sql = 'SELECT count(*)::int AS count FROM subscriptions WHERE account_id = $1';
  return (await harness.database.pool.query(sql, [account.id])).rows[0].count;
}

const replayOf = (response: { headers: Headers }) => response.headers.get('idempotent-replay');
const OTHER_BODY = failure(422, 'The idempotency key was used with another body.');
const STILL_RUNNING = failure(409, 'The first request with this Idempotency-Key is still running.');

describe('a repeated Idempotency-Key', () => {
  test('creates one subscription and returns the same secret again', async () => {
    const firstResponse = await create();
    const second = await create();
    expect([firstResponse.status, replayOf(firstResponse)]).toEqual([201, null]);
    expect([second.status, replayOf(second)]).toEqual([201, 'true']);
    expect(second.json).toEqual(firstResponse.json);
    expect(firstResponse.json.data.hmac_secret).toMatch(/^whsec_/);
    expect(await subscriptionCount()).toBe(1);
  });

  test('is recognized with a trailing slash, with other white space, and in another process', async () => {
    const firstResponse = await create();
    const second = await harness.startSecond();
    try {
      const body = JSON.stringify(SUBSCRIPTION_FIELDS, null, 2);
      const repeatResponse = await post(account.path('/subscriptions/'), { body, call: second.call });
      expect([repeatResponse.status, replayOf(repeatResponse), repeatResponse.json]).toEqual([
        201,
        'true',
        firstResponse.json,
      ]);
    } finally {
      await second.close();
    }
  });

  test('with another body is a 422 and writes nothing', async () => {
    await create();
    const countsBefore = await harness.rowCounts();
    for (const body of [{ ...SUBSCRIPTION_FIELDS, name: 'Another' }, {}, undefined])
      expect(await post(account.path('/subscriptions'), { body })).toMatchObject({
        status: 422,
        json: OTHER_BODY,
      });
    expect(await harness.rowCounts()).toEqual(countsBefore);
  });

  test('repeats the response of a redelivery, whose repetition with another key is a 409', async () => {
    const { id } = (await create()).json.data;
    const delivery = await insertDelivery(harness.database, { subscriptionId: id, accountId: account.id });
    const path = account.path(`/subscription/${id}/delivery/${delivery.id}/redeliver`);
    const firstResponse = await post(path);
    const repeatResponse = await post(path);
    expect([repeatResponse.status, repeatResponse.json, replayOf(repeatResponse)]).toEqual([
      202,
      firstResponse.json,
      'true',
    ]);
    expect((await post(path, { key: `${key}!` })).status).toBe(409);
  });

  test('reports one run even though the database assigns its id', async () => {
    const body = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
    const path = `/api/v2/accounts/${account.id}/runs/`;
    const responses = [await post(path, { body }), await post(path, { body })];
    expect(responses.map(({ status }) => status)).toEqual([201, 201]);
    expect(responses[1]?.json).toEqual(responses[0]?.json);
  });

  test('of another caller or another path is a separate request, as is one without a key', async () => {
    const { id } = (await create()).json.data;
    const token = await harness.newToken(account, ['account_admin']);
    const user = await harness.newUser(account, 'developer', ['account_admin']);
    const ids = [
      (await create({ token })).json.data.id,
      (await create({ token: user.apiKey })).json.data.id,
      (await create({ key: `${key}!` })).json.data.id,
      (await harness.newSubscription(account)).id,
      (await harness.newSubscription(account)).id,
    ];
    expect(new Set([id, ...ids]).size).toBe(6);
    const other = account;
    account = await harness.newAccount();
    expect(replayOf(await create())).toBeNull();
    const job = { name: 'x', project_name: 'x', environment_name: 'x' };
    const path = `/api/v2/accounts/${other.id}/jobs/`;
    expect(replayOf(await post(path, { body: job, token: other.token }))).toBeNull();
  });

  test('expires after a day', async () => {
    const firstResponse = await create();
    await harness.database.pool.query('UPDATE idempotency_keys SET expires_at = now()');
    const second = await create({ body: { ...SUBSCRIPTION_FIELDS, name: 'Another' } });
    expect([second.status, replayOf(second)]).toEqual([201, null]);
    expect(second.json.data.id).not.toBe(firstResponse.json.data.id);
    const { rows } = await harness.database.pool.query(
      `SELECT FROM idempotency_keys WHERE expires_at BETWEEN now() + interval '23 hours' AND now() + interval '24 hours'`,
    );
    expect(rows).toHaveLength(1);
  });

  test('is rejected for a caller who has lost the permission to write', async () => {
    const token = await harness.newToken(account, ['account_admin']);
    await create({ token });
    await harness.database.pool.query(
      `UPDATE service_tokens SET permission_sets = '{read_only}' WHERE token_hash = (
         SELECT token_hash FROM service_tokens ORDER BY id DESC LIMIT 1)`,
    );
    expect((await create({ token })).status).toBe(403);
  });
});

describe('a rejected request releases its Idempotency-Key', () => {
  test('when the body was invalid', async () => {
    expect((await create({ body: { ...SUBSCRIPTION_FIELDS, name: '' } })).status).toBe(400);
    const repeatResponse = await create();
    expect([repeatResponse.status, replayOf(repeatResponse)]).toEqual([201, null]);
  });

  test('when the state did not permit it and then changes', async () => {
    const path = `/api/v2/accounts/${account.id}/runs/777/finish/`;
    const body = { status: 'success' };
    expect((await post(path, { body })).status).toBe(404);
    const run = { job_id: await harness.newJob(account), run_id: 777, engine_version: '1.9.2' };
    await post(`/api/v2/accounts/${account.id}/runs/`, { body: run, key: 'another' });
    expect((await post(path, { body })).status).toBe(200);
  });
});

describe('while the first request with an Idempotency-Key is running', () => {
  test('one of many concurrent requests does the work, and the others are 409s or replays', async () => {
    const responses = await Promise.all(Array.from({ length: 10 }, () => create()));
    const firstResponses = responses.filter(
      (response) => response.status === 201 && replayOf(response) === null,
    );
    expect(firstResponses).toHaveLength(1);
    for (const response of responses.filter((one) => one !== firstResponses[0])) {
      const { status, json, headers } = response;
      expect([json, headers.get('retry-after')]).toEqual(
        status === 201 ? [firstResponses[0]?.json, null] : [STILL_RUNNING, '1'],
      );
    }
    expect(await subscriptionCount()).toBe(1);
  });

  test('a second one is a 409 until the claim of a dead process has expired after a minute', async () => {
    await create();
    const { pool } = harness.database;
    // The state that a process leaves when it is killed during the work.
    await pool.query(
      `UPDATE idempotency_keys SET response_ciphertext = NULL, claimed_until = now() + interval '1 minute'`,
    );
    const inUse = await create();
    expect([inUse.status, inUse.json, inUse.headers.get('retry-after')]).toEqual([409, STILL_RUNNING, '1']);
    await pool.query('UPDATE idempotency_keys SET claimed_until = now()');
    const other = await create({ body: { ...SUBSCRIPTION_FIELDS, name: 'Another' } });
    expect(other).toMatchObject({ status: 422, json: OTHER_BODY });
    const repeatResponse = await create();
    expect([repeatResponse.status, replayOf(repeatResponse)]).toEqual([201, null]);
    expect(replayOf(await create())).toBe('true');
  });
});

describe('the Idempotency-Key', () => {
  const message = 'Idempotency-Key: must be 1 to 255 printable ASCII characters';

  test.each([
    ['empty', ''],
    ['too long', 'x'.repeat(256)],
    ['no ASCII', 'é'],
    ['a tab within', 'a\tb'],
  ])('is rejected with a 400 that names it when it is %s', async (_, invalidKey) => {
    const countsBefore = await harness.rowCounts();
    const { status, json } = await create({ key: invalidKey });
    expect({ status, message: json.status.developer_message }).toEqual({ status: 400, message });
    expect(await harness.rowCounts()).toEqual(countsBefore);
  });

  test.each(['x', '~!"#$ %', 'x'.repeat(255)])('may be %j', async (validKey) => {
    expect((await create({ key: validKey })).status).toBe(201);
    expect(replayOf(await create({ key: validKey }))).toBe('true');
  });

  test('is ignored by the rotation of an API key', async () => {
    const user = await harness.newUser(account, 'developer', ['account_admin']);
    const path = `/api/v2/users/${user.id}/apikey/`;
    const firstResponse = await post(path, { token: user.apiKey });
    expect(firstResponse.status).toBe(200);
    expect((await post(path, { token: user.apiKey })).status).toBe(401);
    const third = await post(path, { token: firstResponse.json.data.api_key });
    expect(third.json.data.api_key).not.toBe(firstResponse.json.data.api_key);
  });
});

test('responses stored for an Idempotency-Key are encrypted, and without the encryption key a repetition is a 409', async () => {
  const { hmac_secret } = (await create()).json.data;
  const { pool } = harness.database;
  const { rows } = await pool.query('SELECT k::text AS row, response_ciphertext FROM idempotency_keys k');
  const responses = rows.map(
    ({ response_ciphertext }) => response_ciphertext && harness.secrets.decrypt(response_ciphertext),
  );
  expect(responses.filter((response) => response?.includes(hmac_secret))).toHaveLength(1);
  for (const { row } of rows) expect(row).not.toContain(hmac_secret);
  await pool.query(`UPDATE idempotency_keys SET response_ciphertext = 'gone.x'`);
  const unreadable = failure(409, 'The stored response to this Idempotency-Key can no longer be read.');
  expect(await create()).toMatchObject({ status: 409, json: unreadable });
  expect(await subscriptionCount()).toBe(1);
});
