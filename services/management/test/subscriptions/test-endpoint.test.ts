import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createHmacSecret, EVENT_TYPES, verify } from '@runhook/contract';
import { type Receiver, startReceiver } from '@runhook/testing';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

const TIMEOUT_MS = 400;

let harness: Harness;
let account: TestAccount;
let receiver: Receiver;

beforeAll(async () => {
  harness = await startHarness({ deliveryTimeoutMs: TIMEOUT_MS, egressAllowCidrs: ['127.0.0.1/32'] });
  account = await harness.newAccount();
});

beforeEach(async () => {
  receiver = await startReceiver();
});

afterEach(() => receiver.close());

afterAll(() => harness.close());

const newSubscription = async (fields: object = {}): Promise<Json> =>
  await harness.newSubscription(account, { client_url: `${receiver.url}/hook`, ...fields });

async function runTest(id: string, query = '') {
  const { token } = account;
  return await harness.call('GET', account.path(`/subscription/${id}/test${query}`), { token });
}

const verified = (error: string | null, statusCode: string) => ({
  status: 200,
  json: { data: { verification_error: error, verification_status_code: statusCode }, status: { code: 200 } },
});

describe('testing a subscription', () => {
  test('sends a signed sample with its account and id', async () => {
    const { id, hmac_secret: secret } = await newSubscription({ name: 'Pager "één"' });
    expect(await runTest(id)).toMatchObject(verified(null, '200'));
    const [request] = await receiver.waitFor(1);
    expect(request).toMatchObject({ method: 'POST', path: '/hook' });
    const { headers, body } = request as NonNullable<typeof request>;
    expect(verify(body, secret, headers.authorization)).toBe(true);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Runhook\//),
      'webhook-signature': expect.stringMatching(/^v1,/),
    });
    const payload = JSON.parse(body.toString());
    expect(payload).toMatchObject({
      accountId: account.id,
      webhooksID: id,
      eventId: headers['webhook-id'],
      eventType: 'job.run.completed',
      webhookName: 'Pager "één"',
      data: {
        runStatus: 'Success',
        runStatusCode: 10,
        runFinishedAt: expect.stringMatching(/^[\d-]{10}T[\d:]{8}Z$/),
      },
    });
    expect(payload.eventId).toMatch(/^wev_[0-9A-Za-z]{27}$/);
  });

  test('sends a new event every time', async () => {
    const { id } = await newSubscription();
    await runTest(id);
    await runTest(id);
    const [first, second] = await receiver.waitFor(2);
    expect(first?.headers['webhook-id']).not.toBe(second?.headers['webhook-id']);
  });

  test.each([204, 299])('treats a %d as a success', async (status) => {
    receiver.respondWith(status);
    expect(await runTest((await newSubscription()).id)).toMatchObject(verified(null, String(status)));
  });

  test.each([301, 404, 410, 500])('reports a %d unchanged', async (status) => {
    receiver.respondWith(status);
    const expected = verified(`The endpoint responded with ${status}.`, String(status));
    expect(await runTest((await newSubscription()).id)).toMatchObject(expected);
  });

  test('reports an endpoint that does not respond in time as 504', async () => {
    receiver.respondWith({ neverResponds: true });
    expect(await runTest((await newSubscription()).id)).toMatchObject(
      verified('Timed out after 0.4 s.', '504'),
    );
    receiver.respondWith({ drip: { bytes: 1, intervalMs: 20 } });
    expect(await runTest((await newSubscription()).id)).toMatchObject(
      verified('Timed out after 0.4 s.', '504'),
    );
  });

  test('reports an endpoint that cannot be reached as 502', async () => {
    const { id } = await newSubscription();
    await receiver.close();
    expect(await runTest(id)).toMatchObject(verified('Connection refused.', '502'));
  });

  test('reports an address that has become forbidden as 502 and sends nothing', async () => {
    const { id } = await newSubscription();
    const url = receiver.url.replace('127.0.0.1', '127.0.0.2');
    await harness.database.pool.query('UPDATE subscriptions SET client_url = $2 WHERE id = $1', [id, url]);
    expect(await runTest(id)).toMatchObject(
      verified('The endpoint has no address that may be called.', '502'),
    );
    expect(receiver.requests).toEqual([]);
  });

  test('reports all targets that it did not call in the same way, whatever the reason', async () => {
    const { id } = await newSubscription();
    const responses = [];
    for (const url of [
      receiver.url.replace('127.0.0.1', '127.0.0.2'),
      'http://10.20.30.40/',
      'http://no-such-name.invalid/',
    ]) {
      const values = [id, url];
      await harness.database.pool.query('UPDATE subscriptions SET client_url = $2 WHERE id = $1', values);
      responses.push((await runTest(id, '?include=error_code')).json.data);
    }
    const [first] = responses;
    expect(first).toEqual({
      verification_error: 'The endpoint has no address that may be called.',
      verification_status_code: '502',
      verification_error_code: 'no_address',
    });
    for (const response of responses) expect(response).toEqual(first);
  });

  test.each([502, 504])('distinguishes a %d of the endpoint from one of Runhook', async (status) => {
    receiver.respondWith(status);
    const { id } = await newSubscription();
    const endpointResponse = {
      verification_error: `The endpoint responded with ${status}.`,
      verification_status_code: String(status),
    };
    expect((await runTest(id)).json.data).toEqual(endpointResponse);
    expect((await runTest(id, '?include=error_code')).json.data).toEqual({
      ...endpointResponse,
      verification_error_code: 'unsuccessful_status',
    });
    await receiver.close();
    expect((await runTest(id, '?include=error_code')).json.data).toMatchObject({
      verification_status_code: '502',
      verification_error_code: 'connection_refused',
    });
    expect((await runTest(id, '?include=all')).status).toBe(400);
  });

  test.each(EVENT_TYPES)('sends a sample of %s on request', async (eventType) => {
    const { id } = await newSubscription({ event_types: ['job.run.started'] });
    await runTest(id, `?event_type=${eventType}`);
    const [request] = await receiver.waitFor(1);
    expect(JSON.parse(String(request?.body))).toMatchObject({ eventType, webhooksID: id });
  });

  test('rejects an unknown event type', async () => {
    const { id } = await newSubscription();
    const { status, json } = await runTest(id, '?event_type=job.run.paused');
    expect([status, json.status.errors[0].field]).toEqual([400, 'event_type']);
    expect(receiver.requests).toEqual([]);
  });

  test('returns the complete exchange on request, without secrets', async () => {
    receiver.respondWith({
      status: 418,
      headers: { 'x-teapot': 'yes' },
      body: `short\0${'x'.repeat(20_000)}`,
    });
    const headers = { 'X-Gateway-Key': 'a key of the gateway' };
    const { id, hmac_secret: secret } = await newSubscription({ headers, signature_header: 'X-Signature' });
    const { data } = (await runTest(id, '?include=exchange')).json;
    expect(data).not.toHaveProperty('verification_error_code');
    const [request] = await receiver.waitFor(1);
    expect(verify(request?.body ?? '', secret, request?.headers['x-signature'] as string)).toBe(true);
    expect(data.exchange).toEqual({
      method: 'POST',
      url: `${receiver.url}/hook`,
      started_at: expect.stringMatching(/^\d{16}$/),
      duration_ms: expect.any(Number),
      http_status_code: '418',
      error: { code: 'unsuccessful_status', message: 'The endpoint responded with 418.' },
      request_headers: {
        'content-type': 'application/json',
        'user-agent': request?.headers['user-agent'],
        'webhook-id': request?.headers['webhook-id'],
        'webhook-timestamp': request?.headers['webhook-timestamp'],
        'webhook-signature': '***',
        'x-gateway-key': '***',
        'x-signature': '***',
      },
      request_body: String(request?.body),
      response_headers: expect.objectContaining({ 'x-teapot': 'yes' }),
      response_body: `short\uFFFD${'x'.repeat(16_378)}`,
      response_truncated: true,
      timings: expect.objectContaining({ tls_ms: null, total_ms: expect.any(Number) }),
    });
  });

  test('treats a 200 with a truncated body as a success and marks the body as incomplete', async () => {
    const { id } = await newSubscription();
    receiver.handleWith((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half', () => response.socket?.end());
    });
    const { data } = (await runTest(id, '?include=exchange')).json;
    expect(data).toMatchObject({ verification_error: null, verification_status_code: '200' });
    expect(data.exchange).toMatchObject({ error: null, response_body: 'half', response_truncated: true });
  });

  test('works for an inactive subscription and writes nothing, whatever the result', async () => {
    const { id } = await newSubscription({ active: false });
    const read = async () => {
      const { rows } = await harness.database.pool.query(
        'SELECT s::text FROM subscriptions s WHERE id = $1',
        [id],
      );
      return { subscription: rows, counts: await harness.rowCounts() };
    };
    const rowsBefore = await read();
    expect(await runTest(id)).toMatchObject(verified(null, '200'));
    receiver.respondWith(500);
    expect(await runTest(id)).toMatchObject(verified('The endpoint responded with 500.', '500'));
    expect(await read()).toEqual(rowsBefore);
  });
});

describe('testing an unsaved subscription', () => {
  const send = async (body: object, headers: Record<string, string> = {}) =>
    await harness.call('POST', account.path('/test'), { token: account.token, body, headers });

  test('sends a signed sample, returns the secret, and stores nothing', async () => {
    const rowsBefore = await harness.rowCounts();
    const { status, json } = await send({ client_url: `${receiver.url}/new`, event_type: 'job.run.errored' });
    expect(status).toBe(200);
    const [request] = await receiver.waitFor(1);
    expect(json.data).toMatchObject({
      verification_error: null,
      verification_status_code: '200',
      verification_error_code: null,
      exchange: { url: `${receiver.url}/new`, request_body: String(request?.body), http_status_code: '200' },
    });
    expect(verify(request?.body ?? '', json.data.hmac_secret, request?.headers.authorization)).toBe(true);
    expect(JSON.parse(String(request?.body))).toMatchObject({
      accountId: account.id,
      eventType: 'job.run.errored',
      webhookName: 'Not saved yet',
      data: { runStatus: 'Errored' },
    });
    expect(await harness.rowCounts()).toEqual(rowsBefore);
  });

  test('signs with the secret of the request and sends its headers', async () => {
    const secret = createHmacSecret();
    const { json } = await send({
      client_url: receiver.url,
      name: 'To be',
      hmac_secret: secret,
      signature_header: 'X-Signature',
      headers: { 'X-Gateway-Key': 'a key' },
    });
    expect(json.data).not.toHaveProperty('hmac_secret');
    const [request] = await receiver.waitFor(1);
    expect(verify(request?.body ?? '', secret, request?.headers['x-signature'] as string)).toBe(true);
    expect(request?.headers).toMatchObject({ 'x-gateway-key': 'a key' });
    expect(request?.headers).not.toHaveProperty('authorization');
    expect(JSON.parse(String(request?.body)).webhookName).toBe('To be');
    expect(JSON.stringify(json)).not.toMatch(/a key|whsec_/);
  });

  test('reports a failure as the test of a saved subscription does', async () => {
    receiver.respondWith({ neverResponds: true });
    expect((await send({ client_url: receiver.url })).json.data).toMatchObject({
      verification_status_code: '504',
      exchange: { error: { code: 'timeout' }, response_headers: null, response_body: null },
    });
    const unnamed = (await send({ client_url: 'http://no-such-name.invalid/' })).json.data;
    expect(unnamed).toMatchObject({
      verification_error_code: 'no_address',
      exchange: { duration_ms: null, timings: null },
    });
  });

  test('masks the secrets of the request in the response', async () => {
    receiver.respondWith(({ headers }) => ({
      headers: { 'x-echo': String(headers['x-gateway-key']) },
      body: JSON.stringify(headers),
    }));
    const custom = { 'X-Gateway-Key': 'a "key" of the gateway' };
    const { json } = await send({ client_url: receiver.url, headers: custom });
    const { response_body, response_headers } = json.data.exchange;
    expect(response_headers['x-echo']).toBe('***');
    expect(JSON.parse(response_body)).toMatchObject({
      'x-gateway-key': '***',
      authorization: '***',
      'webhook-signature': '***',
      'content-type': 'application/json',
    });
  });

  test.each([
    ['a body that is not an object', [], ['body']],
    ['no address', {}, ['client_url']],
    ['a forbidden address', { client_url: 'http://10.1.2.3/' }, ['client_url']],
    [
      'an invalid address and event type',
      { client_url: 'ftp://x', event_type: 'job.run' },
      ['client_url', 'event_type'],
    ],
    ['an invalid secret', { client_url: 'http://127.0.0.1/', hmac_secret: 'secret' }, ['hmac_secret']],
    ['a reserved header', { client_url: 'http://127.0.0.1/', headers: { Host: 'a' } }, ['headers.Host']],
    ['a masked header', { client_url: 'http://127.0.0.1/', headers: { 'X-Key': '***' } }, ['headers.X-Key']],
    [
      'a bad name of a header',
      { client_url: 'http://127.0.0.1/', signature_header: 'a b' },
      ['signature_header'],
    ],
  ])('rejects %s with the validation of a saved subscription', async (_what, body, fields) => {
    const { status, json } = await send(body);
    expect(status).toBe(400);
    expect(json.status.errors.map(({ field }: { field: string }) => field)).toEqual(fields);
    expect(receiver.requests).toEqual([]);
  });

  test('requires the permission to write webhooks', async () => {
    const token = await harness.newToken(account, ['read_only']);
    const response = await harness.call('POST', account.path('/test'), {
      token,
      body: { client_url: receiver.url },
    });
    expect(response.status).toBe(403);
    expect(receiver.requests).toEqual([]);
  });

  test('sends one request for a repeated Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'one test' };
    const first = await send({ client_url: receiver.url }, headers);
    const second = await send({ client_url: receiver.url }, headers);
    expect(second.headers.get('idempotent-replay')).toBe('true');
    expect(second.json).toEqual(first.json);
    expect(receiver.requests).toHaveLength(1);
  });
});
