import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createId } from '@runhook/contract';
import {
  failure,
  type Harness,
  type Json,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
} from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let token: string;

beforeAll(async () => {
  harness = await startHarness();
});

afterAll(() => harness.close());

beforeEach(freshAccount);

async function freshAccount(): Promise<void> {
  account = await harness.newAccount();
  token = account.token;
}

const get = async (id: string) => await harness.call('GET', account.path(`/subscription/${id}`), { token });
const put = async (id: string, body: object) =>
  await harness.call('PUT', account.path(`/subscription/${id}`), { token, body });
const putIfMatch = async (id: string, body: object, etag: string) =>
  await harness.call('PUT', account.path(`/subscription/${id}`), {
    token,
    body,
    headers: { 'if-match': etag },
  });
const list = async (query = '') =>
  (await harness.call('GET', account.path(`/subscriptions${query}`), { token })).json;

describe('creating a subscription', () => {
  test('returns all its fields, with defaults for omitted ones', async () => {
    const beforeMicros = BigInt(Date.now()) * 1000n;
    const { status, json } = await harness.call('POST', account.path('/subscriptions'), {
      token,
      body: { ...SUBSCRIPTION_FIELDS, id: '', unknown: { fields: 'are ignored' } },
    });
    expect(status).toBe(201);
    expect(json).toEqual({
      data: {
        id: expect.stringMatching(/^wsu_[0-9A-Za-z]{27}$/),
        account_identifier: account.identifier,
        account_id: String(account.id),
        name: 'Runs to the pager',
        description: '',
        job_ids: [],
        event_types: ['job.run.completed', 'job.run.errored'],
        client_url: 'https://receiver.example.com/hooks',
        active: true,
        created_at: expect.stringMatching(/^\d{16}$/),
        updated_at: json.data.created_at,
        http_status_code: '0',
        hmac_secret: expect.stringMatching(/^whsec_[0-9A-Za-z+/]{43}=$/),
      },
      status: { code: 201 },
    });
    expect(BigInt(json.data.created_at)).toBeGreaterThan(beforeMicros - 1_000_000n);
  });

  test('stores values as they were sent, and job_ids in order, as strings and without repeats', async () => {
    const jobs = [
      await harness.newJob(account),
      await harness.newJob(account),
      await harness.newJob(account),
    ];
    const fields = {
      name: ' Ünïcödé 🪝 ',
      description: 'two\nlines',
      event_types: ['job.run.errored', 'job.run.started'],
      job_ids: [jobs[2], String(jobs[0]), jobs[1], jobs[2]],
      client_url: 'http://receiver.example.com:8080/a?b=c#d',
      active: false,
    };
    const created = await harness.newSubscription(account, fields);
    const expected = { ...fields, job_ids: [String(jobs[2]), String(jobs[0]), String(jobs[1])] };
    expect(created).toMatchObject(expected);
    expect((await get(created.id)).json.data).toMatchObject(expected);
  });

  test('rejects a deleted job, unless the stored webhook lists it', async () => {
    const account = await harness.newAccount();
    const jobId = await harness.newJob(account);
    const { id } = await harness.newSubscription(account, { job_ids: [jobId] });
    const { token } = account;
    const job = `/api/v2/accounts/${account.id}/jobs/${jobId}/`;
    expect((await harness.call('DELETE', job, { token })).json.data.webhooks).toEqual([
      { id, name: SUBSCRIPTION_FIELDS.name },
    ]);
    const body = { ...SUBSCRIPTION_FIELDS, job_ids: [jobId] };
    const path = account.path(`/subscription/${id}`);
    expect((await harness.call('PUT', path, { token, body })).status).toBe(200);
    const created = await harness.call('POST', account.path('/subscriptions'), { token, body });
    expect([created.status, created.json.status.errors[0].field]).toEqual([400, 'job_ids']);
  });

  test('accepts a single job and null for job_ids', async () => {
    const jobId = await harness.newJob(account);
    expect(await harness.newSubscription(account, { job_ids: jobId })).toMatchObject({
      job_ids: [String(jobId)],
    });
    expect(await harness.newSubscription(account, { job_ids: null })).toMatchObject({ job_ids: [] });
  });

  test('returns the secret only once and stores it encrypted', async () => {
    const { id, hmac_secret } = await harness.newSubscription(account);
    expect((await get(id)).json.data).not.toHaveProperty('hmac_secret');
    expect((await put(id, SUBSCRIPTION_FIELDS)).json.data).not.toHaveProperty('hmac_secret');
    for (const getOne of (await list()).data) expect(getOne).not.toHaveProperty('hmac_secret');
    const { rows } = await harness.database.pool.query(
      'SELECT s::text AS whole, hmac_secret_ciphertext FROM subscriptions s WHERE id = $1',
      [id],
    );
    expect(rows[0].whole).not.toContain(hmac_secret.slice('whsec_'.length, -1));
    expect(harness.secrets.decrypt(rows[0].hmac_secret_ciphertext)).toBe(hmac_secret);
  });

  test('is rejected above the limit of an account, until one is deleted', async () => {
    const { id } = await harness.newSubscription(account);
    await harness.database.pool.query(
      `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active,
                                  hmac_secret_ciphertext)
       SELECT left(s.id, 20) || lpad(n::text, 11, '0'), account_id, name, description, event_types, job_ids, client_url,
              false, hmac_secret_ciphertext
       FROM subscriptions s, generate_series(1, 999) AS n WHERE s.id = $1`,
      [id],
    );
    const create = () =>
      harness.call('POST', account.path('/subscriptions'), { token, body: SUBSCRIPTION_FIELDS });
    const rejected = await create();
    expect(rejected.status).toBe(409);
    expect(rejected.json).toEqual(failure(409, 'The account has 1000 webhooks, the maximum.'));
    await harness.call('DELETE', account.path(`/subscription/${id}`), { token });
    expect((await create()).status).toBe(201);
  });

  test('generates a different secret for each one', async () => {
    const secrets = [await harness.newSubscription(account), await harness.newSubscription(account)];
    expect(secrets[0].hmac_secret).not.toBe(secrets[1].hmac_secret);
  });
});

describe('reading a subscription', () => {
  test('shows the time and status of its latest attempt once there is one', async () => {
    const { id } = await harness.newSubscription(account);
    expect((await get(id)).json.data).not.toHaveProperty('dispatched_at');
    await harness.database.pool.query(
      `UPDATE subscriptions SET http_status_code = 410, deactivate_reason = 'gone',
         dispatched_at = '2026-11-20T10:00:00.123456Z' WHERE id = $1`,
      [id],
    );
    expect((await get(id)).json.data).toMatchObject({
      http_status_code: '410',
      dispatched_at: '1795168800123456',
      deactivate_reason: 'gone',
    });
  });

  test('shows the error of the latest attempt only on request', async () => {
    const { id } = await harness.newSubscription(account);
    const { token } = account;
    const getOne = async (query: string) =>
      (await harness.call('GET', account.path(`/subscription/${id}${query}`), { token })).json.data;
    const inList = async (query: string) => {
      const { json } = await harness.call('GET', account.path(`/subscriptions${query}`), { token });
      return json.data.find((row: { id: string }) => row.id === id);
    };
    const record = (errorCode: string | null) =>
      harness.database.pool.query(
        'UPDATE subscriptions SET http_status_code = 502, error_code = $2 WHERE id = $1',
        [id, errorCode],
      );
    expect((await getOne('?include=error_code')).error_code).toBeNull();
    for (const [recorded, errorCode] of [
      ['unsuccessful_status', 'unsuccessful_status'],
      ['connection_refused', 'connection_refused'],
      ['dns_failed', 'no_address'],
      ['address_forbidden', 'no_address'],
      ['port_forbidden', 'no_address'],
    ] as const) {
      await record(recorded);
      expect([await getOne('?include=error_code'), await inList('?include=error_code')]).toMatchObject([
        { error_code: errorCode },
        { error_code: errorCode },
      ]);
    }
    for (const response of [await getOne(''), await inList('')])
      expect(response).not.toHaveProperty('error_code');
    const rejected = await harness.call('GET', account.path('/subscriptions?include=all'), { token });
    expect(rejected.status).toBe(400);
  });
});

describe('updating a subscription', () => {
  test('is a 412 if it was replaced since it was read, and overwrites it without If-Match', async () => {
    const created = await harness.call('POST', account.path('/subscriptions'), {
      token,
      body: SUBSCRIPTION_FIELDS,
    });
    const { id, updated_at } = created.json.data;
    const etag = created.headers.get('etag') ?? '';
    expect(etag).toBe(`"${updated_at}"`);
    expect((await get(id)).headers.get('etag')).toBe(etag);

    const firstUpdate = await putIfMatch(id, { ...SUBSCRIPTION_FIELDS, name: 'First' }, `"1", ${etag}`);
    expect(firstUpdate.status).toBe(200);
    const currentEtag = firstUpdate.headers.get('etag') ?? '';
    expect(currentEtag).toBe(`"${firstUpdate.json.data.updated_at}"`);
    for (const stale of [etag, `W/${currentEtag}`, updated_at]) {
      const { status, json } = await putIfMatch(id, { ...SUBSCRIPTION_FIELDS, name: 'Second' }, stale);
      expect([status, json]).toEqual([
        412,
        failure(412, 'The webhook was changed meanwhile: read it again.'),
      ]);
    }
    expect((await get(id)).json.data.name).toBe('First');
    expect((await putIfMatch(id, { ...SUBSCRIPTION_FIELDS, name: 'Third' }, '*')).status).toBe(200);
    expect((await put(id, { ...SUBSCRIPTION_FIELDS, name: 'Fourth' })).status).toBe(200);
  });

  test('succeeds for one of several concurrent calls with the same If-Match', async () => {
    const { id, updated_at } = await harness.newSubscription(account);
    const responses = await Promise.all(
      ['A', 'B', 'C', 'D'].map((name) => putIfMatch(id, { ...SUBSCRIPTION_FIELDS, name }, `"${updated_at}"`)),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
    const saved = responses.find(({ status }) => status === 200);
    expect((await get(id)).json.data.name).toBe(saved?.json.data.name);
  });

  test('replaces its fields, with defaults for omitted ones', async () => {
    const jobId = await harness.newJob(account);
    const { hmac_secret, ...created } = await harness.newSubscription(account, {
      description: 'x',
      job_ids: [jobId],
    });
    const fields = {
      name: 'Renamed',
      event_types: ['job.run.started'],
      client_url: 'https://other.example.com/',
      active: false,
    };
    const { status, json } = await put(created.id, fields);
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        data: { ...created, ...fields, description: '', job_ids: [], updated_at: expect.any(String) },
        status: { code: 200 },
      },
    });
    expect((await get(created.id)).json.data).toEqual(json.data);
  });

  test('keeps the stored value of active if it is omitted', async () => {
    const { id } = await harness.newSubscription(account, { active: false });
    expect((await put(id, SUBSCRIPTION_FIELDS)).json.data.active).toBe(false);
    expect((await put(id, { ...SUBSCRIPTION_FIELDS, active: true })).json.data.active).toBe(true);
    expect((await put(id, SUBSCRIPTION_FIELDS)).json.data.active).toBe(true);
  });

  test('accepts the stored URL although only an older release permitted it, and no other such URL', async () => {
    const { id } = await harness.newSubscription(account);
    const data = { clientUrl: 'https://a..example.com/' };
    await harness.database.prisma.subscription.update({ where: { id }, data });
    const fields = { ...SUBSCRIPTION_FIELDS, active: false };
    expect((await put(id, { ...fields, client_url: data.clientUrl })).json.data).toMatchObject({
      client_url: data.clientUrl,
      active: false,
    });
    expect((await put(id, { ...fields, client_url: 'https://b..example.com/' })).status).toBe(400);
  });

  test('increases updated_at every time', async () => {
    const created = await harness.newSubscription(account);
    let beforeMicros = created.updated_at;
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => put(created.id, SUBSCRIPTION_FIELDS)),
    );
    const times = responses.map(({ json }) => json.data.updated_at).sort();
    expect(new Set(times).size).toBe(20);
    for (const time of times) {
      expect(BigInt(time)).toBeGreaterThan(BigInt(beforeMicros));
      beforeMicros = time;
    }
    expect((await get(created.id)).json.data.created_at).toBe(created.created_at);
  });

  test('concurrently leaves all fields of one of the calls', async () => {
    const { id } = await harness.newSubscription(account);
    const bodies = Array.from({ length: 8 }, (_, index) => ({
      ...SUBSCRIPTION_FIELDS,
      name: `Name ${index}`,
      description: `Description ${index}`,
      client_url: `https://receiver${index}.example.com/`,
    }));
    const responses = await Promise.all(bodies.map((body) => put(id, body)));
    const last = responses
      .map(({ json }) => json.data)
      .reduce((getOne, other) => (BigInt(getOne.updated_at) > BigInt(other.updated_at) ? getOne : other));
    expect((await get(id)).json.data).toEqual(last);
  });

  test('after its deletion is a 404 and changes nothing', async () => {
    const { id } = await harness.newSubscription(account);
    const [deleted, ...rest] = await Promise.all([
      harness.call('DELETE', account.path(`/subscription/${id}`), { token }),
      harness.call('DELETE', account.path(`/subscription/${id}`), { token }),
      put(id, SUBSCRIPTION_FIELDS),
    ]);
    expect([deleted?.status, rest[0]?.status].sort()).toEqual([200, 404]);
    expect([200, 404]).toContain(rest[1]?.status);
    expect((await put(id, { ...SUBSCRIPTION_FIELDS, name: 'Late' })).status).toBe(404);
    const storedRow = await harness.database.prisma.subscription.findUniqueOrThrow({ where: { id } });
    expect(storedRow.name).toBe(SUBSCRIPTION_FIELDS.name);
  });

  test('to active clears the reason of a deactivation; the deactivation itself leaves updated_at unchanged', async () => {
    const { id, updated_at } = await harness.newSubscription(account);
    await harness.database.pool.query(
      `UPDATE subscriptions SET active = false, deactivate_reason = 'gone' WHERE id = $1`,
      [id],
    );
    expect((await get(id)).json.data).toMatchObject({ active: false, updated_at });
    expect((await put(id, SUBSCRIPTION_FIELDS)).json.data).toMatchObject({
      active: false,
      deactivate_reason: 'gone',
    });
    const activated = (await put(id, { ...SUBSCRIPTION_FIELDS, active: true })).json.data;
    expect(activated.active).toBe(true);
    expect(activated).not.toHaveProperty('deactivate_reason');
  });
});

describe('deleting a subscription', () => {
  test('removes it from the API at once and keeps its row for the log', async () => {
    const { id } = await harness.newSubscription(account);
    expect((await harness.call('DELETE', account.path(`/subscription/${id}`), { token })).status).toBe(200);
    const notFound = { status: 404, json: failure(404, 'Webhook not found.') };
    expect(await get(id)).toMatchObject(notFound);
    expect(await put(id, SUBSCRIPTION_FIELDS)).toMatchObject(notFound);
    for (const [method, rest] of [
      ['DELETE', ''],
      ['GET', '/test'],
      ['GET', '/deliveries'],
      ['GET', `/delivery/${createId('delivery')}`],
      ['POST', `/delivery/${createId('delivery')}/redeliver`],
      ['POST', '/recover'],
      ['GET', `/recovery/${createId('recovery')}`],
    ] as const) {
      const response = await harness.call(method, account.path(`/subscription/${id}${rest}`), { token });
      expect(response).toMatchObject(notFound);
    }
    expect((await list('?limit=100')).data.map((getOne: Json) => getOne.id)).not.toContain(id);
    const { rows } = await harness.database.pool.query('SELECT deleted_at FROM subscriptions WHERE id = $1', [
      id,
    ]);
    expect(rows[0].deleted_at).toBeInstanceOf(Date);
  });
});

describe('the list of subscriptions', () => {
  test('is sorted newest first, in pages, with the total', async () => {
    const ids: string[] = [];
    for (let count = 0; count < 12; count++) ids.unshift((await harness.newSubscription(account)).id);
    const idsOf = (response: Json) => response.data.map((getOne: Json) => getOne.id);
    const firstUpdate = await list();
    expect(idsOf(firstUpdate)).toEqual(ids.slice(0, 10));
    expect(firstUpdate.extra).toEqual({
      pagination: { total_count: 12, count: 10 },
      filters: { offset: 0, limit: 10 },
    });
    const second = await list('?limit=5&offset=10');
    expect(idsOf(second)).toEqual(ids.slice(10));
    expect(second.extra).toEqual({
      pagination: { total_count: 12, count: 2 },
      filters: { offset: 10, limit: 5 },
    });
    expect(idsOf(await list('?limit=100'))).toEqual(ids);
    const beyond = await list('?offset=50');
    expect(beyond.data).toEqual([]);
    expect(beyond.extra.pagination).toEqual({ total_count: 12, count: 0 });
  });

  test('is sorted by descending id for equal times of creation', async () => {
    const ids = [await harness.newSubscription(account), await harness.newSubscription(account)].map(
      ({ id }) => id,
    );
    await harness.database.pool.query('UPDATE subscriptions SET created_at = now() WHERE id = ANY($1)', [
      ids,
    ]);
    expect((await list()).data.map((getOne: Json) => getOne.id)).toEqual(ids.sort().reverse());
  });

  test('omits subscriptions of other accounts', async () => {
    await harness.newSubscription(await harness.newAccount());
    expect((await list()).data).toEqual([]);
    expect((await list()).extra.pagination).toEqual({ total_count: 0, count: 0 });
  });
});
