import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { failure, type Harness, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});

afterAll(() => harness.close());

describe('a response is compressed', () => {
  const call = async (method: string, path: string, token: string, acceptEncoding = 'gzip') => {
    const body = method === 'POST' ? { ...SUBSCRIPTION_FIELDS, description: 'x'.repeat(500) } : undefined;
    const headers = { 'accept-encoding': acceptEncoding };
    const response = await harness.call(method, path, { token, headers, ...(body && { body }) });
    const [encoding, vary] = ['content-encoding', 'vary'].map((name) => response.headers.get(name));
    return { status: response.status, encoding, vary };
  };

  test('if it is a long one to a GET and the client accepts that', async () => {
    const owner = await harness.newAccount();
    const subscriptions = owner.path('/subscriptions');
    for (let created = 0; created < 4; created += 1)
      await harness.newSubscription(owner, { description: 'x'.repeat(500) });
    expect(await call('GET', subscriptions, owner.token)).toMatchObject({
      encoding: 'gzip',
      vary: 'Accept-Encoding',
    });
    expect(await call('GET', subscriptions, owner.token, 'gzip, br')).toMatchObject({ encoding: 'br' });
    expect(await call('GET', subscriptions, owner.token, 'identity')).toMatchObject({
      encoding: null,
      vary: 'Accept-Encoding',
    });
    expect(await call('HEAD', subscriptions, owner.token)).toMatchObject({ status: 200, encoding: null });
    expect(await call('GET', `${subscriptions}?limit=1`, owner.token)).toMatchObject({ encoding: null });
    for (const path of ['/openapi.json', '/asyncapi.json', '/schemas/published-event.json'])
      expect(await call('GET', path, '')).toMatchObject({ encoding: 'gzip', vary: 'Accept-Encoding' });
  });

  test('never if it may contain a secret', async () => {
    const created = await call('POST', account.path('/subscriptions'), account.token);
    expect(created).toMatchObject({ status: 201, encoding: null, vary: null });
    const { apiKey } = await harness.newUser(account, 'developer', []);
    // A short response would not be compressed anyway, so the marker is what counts.
    expect(await call('GET', '/api/v3/profile', apiKey)).toMatchObject({ status: 200, vary: null });
  });
});

describe('every response is a JSON envelope', () => {
  test('for an unknown path, which is a 404', async () => {
    for (const path of ['/nothing', '/api', '/api/v3/accounts/1/webhooks', '/api/v3/nothing?x=1']) {
      const { status, headers, json } = await harness.call('GET', path, { token: account.token });
      expect({ status, json }).toEqual({ status: 404, json: failure(404, 'Not found.') });
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  test('for a conditional request, whose condition is ignored', async () => {
    const headers = { 'if-none-match': '*', 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' };
    const { status, json } = await harness.call('GET', '/api/v2/accounts', { token: account.token, headers });
    expect({ status, ids: json.data.map(({ id }: { id: number }) => id) }).toEqual({
      status: 200,
      ids: [account.id],
    });
  });

  test('for a path that cannot be decoded, which is a 404', async () => {
    const { token } = account;
    const { status, json } = await harness.call('GET', account.path('/subscription/%E0%A4%A'), { token });
    expect({ status, json }).toEqual({ status: 404, json: failure(404, 'Not found.') });
  });

  test('for another method of a known path, which is a 405 with the allowed methods', async () => {
    const list = await harness.call('PATCH', account.path('/subscriptions/'), { body: {} });
    expect(list.status).toBe(405);
    expect(list.headers.get('allow')).toBe('GET, HEAD, POST');
    expect(list.json).toEqual(failure(405, 'Method PATCH is not allowed here.', 'allowed: GET, HEAD, POST'));
    const notFoundResponse = await harness.call('POST', account.path('/subscription/wsu_x'));
    expect(notFoundResponse.headers.get('allow')).toBe('GET, HEAD, PUT, DELETE');
  });

  test('with repaired noncharacters for rows of earlier releases', async () => {
    const { token } = account;
    const jobId = await harness.newJob(account);
    const { id } = await harness.newSubscription(account);
    const runs = `/api/v2/accounts/${account.id}/runs/`;
    const start = { job_id: jobId, engine_version: '1.9.2' };
    const { json } = await harness.call('POST', runs, { token, body: start });
    const { pool } = harness.database;
    const text = 'a\ufffeb\u{1ffff}';
    await pool.query('UPDATE subscriptions SET name = $1, description = $1 WHERE id = $2', [text, id]);
    await pool.query('UPDATE jobs SET name = $1 WHERE id = $2', [text, jobId]);
    await pool.query('UPDATE runs SET reason = $1 WHERE id = $2', [text, json.data.id]);
    const readData = async (path: string) => (await harness.call('GET', path, { token })).json.data;
    const [repaired, of] = ['a\ufffdb\ufffd', expect.objectContaining];
    expect(await readData(account.path(`/subscription/${id}`))).toMatchObject({
      name: repaired,
      description: repaired,
    });
    expect(await readData(account.path('/subscriptions'))).toContainEqual(of({ id, name: repaired }));
    expect(await readData(`/api/v2/accounts/${account.id}/jobs/`)).toContainEqual(
      of({ id: jobId, name: repaired }),
    );
    expect(await readData(`${runs}${json.data.id}`)).toMatchObject({ reason: repaired });
  });

  test('for a body that is not JSON, which is a 400', async () => {
    const { token } = account;
    for (const body of ['{"name":', 'name=x', '{} {}', '']) {
      const countsBefore = await harness.rowCounts();
      const response = await harness.call('POST', account.path('/subscriptions'), { token, body });
      expect(response.status).toBe(400);
      expect(response.json.data).toBeNull();
      expect(response.json.status.developer_message).toMatch(/^body: /);
      expect(await harness.rowCounts()).toEqual(countsBefore);
    }
    const notJson = await harness.call('POST', account.path('/subscriptions'), { token, body: '{' });
    expect(notJson.json).toEqual(
      failure(400, 'Invalid request: body must be valid JSON.', 'body: must be valid JSON'),
    );
  });

  test('for a body that is too large, which is a 413', async () => {
    const body = { ...SUBSCRIPTION_FIELDS, description: 'x'.repeat(64 * 1024) };
    const { token } = account;
    const response = await harness.call('POST', account.path('/subscriptions'), { token, body });
    expect(response).toMatchObject({ status: 413, json: failure(413, 'The request body is too large.') });
    const signIn = { email: 'a@example.com', password: 'wrong', padding: 'x'.repeat(16 * 1024) };
    expect(await harness.call('POST', '/api/v3/session', { body: signIn })).toMatchObject({ status: 413 });
  });

  test('for the longest status message of a run, which is accepted although each character is escaped', async () => {
    const { token } = account;
    const runs = `/api/v2/accounts/${account.id}/runs/`;
    const start = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
    const started = await harness.call('POST', runs, { token, body: start });
    const body = `{"status":"errored","status_message":"${'\\ud83d\\ude80'.repeat(65_536)}"}`;
    const finished = await harness.call('POST', `${runs}${started.json.data.id}/finish/`, { token, body });
    expect(finished.status).toBe(200);
  });

  test('for a body with too many values or levels, which is a 400 whatever it contains', async () => {
    const { token } = account;
    const invalidBody = {
      'must not have more than 5000 values': `{"event_types":[${'1,'.repeat(20_000)}1]}`,
      'must not be nested deeper than 20 levels': `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
    };
    for (const [message, body] of Object.entries(invalidBody)) {
      for (const headers of [{}, { 'idempotency-key': 'deep' }]) {
        const response = await harness.call('POST', account.path('/subscriptions'), { token, body, headers });
        expect(response).toMatchObject({ status: 400, json: { data: null } });
        expect(response.json.status.developer_message).toBe(`body: ${message}`);
      }
    }
  });

  test('with at most twenty problems', async () => {
    const { token } = account;
    const body = { ...SUBSCRIPTION_FIELDS, event_types: Array.from({ length: 4_000 }, (_, index) => index) };
    const response = await harness.call('POST', account.path('/subscriptions'), { token, body });
    expect(response.status).toBe(400);
    const messages: string[] = response.json.status.errors.flatMap(({ message }: { message: string }) =>
      message.split('; '),
    );
    expect(messages).toHaveLength(20);
  });

  test('for a body of another content type, encoding or charset, which is a 415', async () => {
    const { token } = account;
    const body = JSON.stringify(SUBSCRIPTION_FIELDS);
    const ofType = failure(
      415,
      'The request body must be JSON: Content-Type must be application/json.',
      'content-type: must be application/json',
    );
    const ofCharset = failure(
      415,
      'The request body must be in UTF-8: the charset in Content-Type is not supported.',
      'content-type: charset must be utf-8',
    );
    const ofEncoding = failure(
      415,
      'The request body must not be compressed: its Content-Encoding is not supported. Accept-Encoding names the supported one.',
      'content-encoding: must be absent or identity',
    );
    const rejected: [headers: Record<string, string>, json: object, acceptEncoding: string | null][] = [
      [{ 'content-type': 'application/x-www-form-urlencoded' }, ofType, null],
      [{ 'content-type': 'text/plain' }, ofType, null],
      [{ 'content-type': 'application/json; charset=latin1' }, ofCharset, null],
      [{ 'content-encoding': 'compress' }, ofEncoding, 'identity'],
      [{ 'content-encoding': 'gzip' }, ofEncoding, 'identity'],
    ];
    for (const [headers, expected, acceptEncoding] of rejected) {
      const response = await harness.call('POST', account.path('/subscriptions'), { token, body, headers });
      const { status, json } = response;
      expect({ status, json }).toEqual({ status: 415, json: expected });
      expect(response.headers.get('accept-encoding')).toBe(acceptEncoding);
    }
  });

  test('with exactly the documented parts for a list, a single object and a delete', async () => {
    const otherAccount = await harness.newAccount();
    const { token } = otherAccount;
    const { hmac_secret, ...created } = await harness.newSubscription(otherAccount);
    const notFoundResponse = await harness.call('GET', otherAccount.path(`/subscription/${created.id}`), {
      token,
    });
    expect(notFoundResponse.json).toEqual({ data: created, status: { code: 200 } });
    const list = await harness.call('GET', otherAccount.path('/subscriptions'), { token });
    expect(list.json).toEqual({
      data: [created],
      status: { code: 200 },
      extra: { pagination: { total_count: 1, count: 1 }, filters: { offset: 0, limit: 10 } },
    });
    const deleteResponse = await harness.call('DELETE', otherAccount.path(`/subscription/${created.id}`), {
      token,
    });
    expect(deleteResponse.json).toEqual({
      data: { id: created.id },
      status: { code: 200, is_success: true },
    });
  });
});

describe('every response of the API', () => {
  test('is the same with and without a trailing slash', async () => {
    const { token } = account;
    const { id } = await harness.newSubscription(account);
    for (const path of ['/subscriptions', `/subscription/${id}`, `/subscription/${id}/deliveries`]) {
      const withoutSlash = await harness.call('GET', account.path(path), { token });
      const slashResponse = await harness.call('GET', account.path(`${path}/`), { token });
      expect(withoutSlash.status).toBe(200);
      expect(slashResponse.json).toEqual(withoutSlash.json);
    }
    const created = await harness.call('POST', account.path('/subscriptions/'), {
      token,
      body: SUBSCRIPTION_FIELDS,
    });
    expect(created.status).toBe(201);
  });

  test('has a new request id, or the one that the caller sent', async () => {
    const firstResponse = await harness.call('GET', '/nothing');
    const second = await harness.call('GET', '/nothing');
    expect(firstResponse.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(second.headers.get('x-request-id')).not.toBe(firstResponse.headers.get('x-request-id'));
    const suppliedIdResponse = await harness.call('GET', '/nothing', {
      headers: { 'x-request-id': 'deploy-42.a' },
    });
    expect(suppliedIdResponse.headers.get('x-request-id')).toBe('deploy-42.a');
    const invalidIdResponse = await harness.call('GET', '/nothing', { headers: { 'x-request-id': 'a b"c' } });
    expect(invalidIdResponse.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('does not identify the server software and must not be cached', async () => {
    const { headers } = await harness.call('GET', account.path('/subscriptions'), { token: account.token });
    expect(headers.get('x-powered-by')).toBeNull();
    expect(headers.get('etag')).toBeNull();
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });
});
