import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { verify } from '@runhook/contract';
import { type Receiver, startReceiver } from '@runhook/testing';
import { type Harness, type Json, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let receiver: Receiver;

beforeAll(async () => {
  harness = await startHarness({ egressAllowCidrs: ['127.0.0.1/32'] });
  account = await harness.newAccount();
});

beforeEach(async () => {
  receiver = await startReceiver();
});

afterEach(() => receiver.close());

afterAll(() => harness.close());

const SECRET = 'Zq8-gateway-Zq8';
const GATEWAY_HEADERS = {
  signature_header: 'X-Signature',
  headers: { 'X-Gate': SECRET, Authorization: 'Basic YTpi' },
};

const subscribe = (fields: object = GATEWAY_HEADERS): Promise<Json> =>
  harness.newSubscription(account, { client_url: `${receiver.url}/hook`, ...fields });

const call = (method: string, id: string, options: { suffix?: string; body?: object } = {}) =>
  harness.call(method, account.path(`/subscription/${id}${options.suffix ?? ''}`), {
    token: account.token,
    ...(options.body && { body: options.body }),
  });

async function put(id: string, changes: object) {
  return await call('PUT', id, {
    body: { ...SUBSCRIPTION_FIELDS, client_url: `${receiver.url}/hook`, ...changes },
  });
}

/** Sends a sample to the endpoint; returns the headers and body of its request. */
async function sentHeaders(id: string) {
  const count = receiver.requests.length;
  expect((await call('GET', id, { suffix: '/test' })).json.data.verification_error).toBeNull();
  const request = receiver.requests[count];
  return { headers: request?.headers ?? {}, body: request?.body ?? '' };
}

const problemsOf = ({ status, json }: { status: number; json: Json }) => [
  status,
  json.status.errors.map(({ field }: { field: string }) => field),
];

test('a webhook without custom headers and signature header omits both fields', async () => {
  const created = await subscribe({});
  for (const view of [created, (await call('GET', created.id)).json.data]) {
    expect(view).not.toHaveProperty('signature_header');
    expect(view).not.toHaveProperty('headers');
  }
  expect(await subscribe({ signature_header: 'authorization', headers: {} })).not.toHaveProperty('headers');
});

test('values of custom headers are masked in responses and stored encrypted', async () => {
  const created = await subscribe();
  const maskedFields = {
    signature_header: 'X-Signature',
    headers: { 'X-Gate': '***', Authorization: '***' },
  };
  expect(created).toMatchObject(maskedFields);
  expect((await call('GET', created.id)).json.data).toMatchObject(maskedFields);
  const { rows } = await harness.database.pool.query('SELECT * FROM subscriptions WHERE id = $1', [
    created.id,
  ]);
  expect(JSON.stringify(rows[0])).not.toContain(SECRET);
  expect(JSON.parse(harness.secrets.decrypt(rows[0].headers_ciphertext))).toEqual(GATEWAY_HEADERS.headers);
});

test('a test of a webhook sends its custom headers, and the signature in its signature header', async () => {
  const { id, hmac_secret: secret } = await subscribe();
  const { headers, body } = await sentHeaders(id);
  expect(verify(body, secret, headers['x-signature'] as string)).toBe(true);
  expect(headers).toMatchObject({
    'x-gate': SECRET,
    authorization: 'Basic YTpi',
    'content-type': 'application/json',
    'webhook-signature': expect.stringMatching(/^v1,/),
  });
});

describe('an update of a webhook with custom headers', () => {
  test('with the response of a GET keeps the values of headers', async () => {
    const { id } = await subscribe();
    const subscriptionBefore = (await call('GET', id)).json.data;
    const { json } = await call('PUT', id, { body: subscriptionBefore });
    expect(json.data).toMatchObject({ headers: subscriptionBefore.headers, signature_header: 'X-Signature' });
    expect((await sentHeaders(id)).headers).toMatchObject({ 'x-gate': SECRET, authorization: 'Basic YTpi' });
  });

  test('keeps omitted headers, and removes them for null', async () => {
    const { id } = await subscribe();
    expect((await put(id, {})).json.data).toMatchObject({ headers: { 'X-Gate': '***' } });
    expect((await sentHeaders(id)).headers).toMatchObject({
      'x-gate': SECRET,
      'x-signature': expect.any(String),
    });
    const { json } = await put(id, { headers: null, signature_header: null });
    expect(json.data).not.toHaveProperty('headers');
    expect(json.data).not.toHaveProperty('signature_header');
    const { headers } = await sentHeaders(id);
    expect(headers).not.toHaveProperty('x-gate');
    expect(headers.authorization).toMatch(/^[0-9a-f]{64}$/);
  });

  test('keeps, changes, removes and adds headers, ignoring the case of kept names', async () => {
    const { id } = await subscribe({ headers: { 'X-Kept': 'kept', 'X-Changed': 'old', 'X-Dropped': 'x' } });
    const { json } = await put(id, { headers: { 'x-kept': '***', 'X-Changed': 'new', 'X-Added': 'added' } });
    expect(json.data.headers).toEqual({ 'x-kept': '***', 'X-Changed': '***', 'X-Added': '***' });
    const { headers } = await sentHeaders(id);
    expect(headers).toMatchObject({ 'x-kept': 'kept', 'x-changed': 'new', 'x-added': 'added' });
    expect(headers).not.toHaveProperty('x-dropped');
  });

  test('to another server requires the values again, so that they are not disclosed', async () => {
    const { id } = await subscribe();
    const otherUrl = 'https://elsewhere.example.com/hook';
    expect(problemsOf(await put(id, { client_url: otherUrl }))).toEqual([400, ['headers']]);
    const masked = { 'X-Gate': '***', 'X-New': 'x' };
    expect(problemsOf(await put(id, { client_url: otherUrl, headers: masked }))).toEqual([
      400,
      ['headers.X-Gate'],
    ]);
    expect((await put(id, { client_url: `${receiver.url}/other/path` })).status).toBe(200);
    expect((await put(id, { client_url: otherUrl, headers: { 'X-Gate': 'again' } })).status).toBe(200);
  });

  test('does not restore a value that a concurrent update has replaced', async () => {
    const { id } = await subscribe({ headers: { 'X-Gate': 'old' } });
    const results = await Promise.all([
      ...Array.from({ length: 4 }, () => put(id, { headers: { 'X-Gate': 'new' } })),
      ...Array.from({ length: 4 }, () => put(id, {})),
    ]);
    for (const { status } of results) expect([200, 409]).toContain(status);
    expect((await sentHeaders(id)).headers).toMatchObject({ 'x-gate': 'new' });
  });
});

test.each([
  ['a mask where nothing is stored', { headers: { 'X-Gate': '***' } }, 'headers.X-Gate'],
  ['the header of the signature', { headers: { authorization: 'x' } }, 'headers.authorization'],
  [
    'another header of the signature',
    { signature_header: 'X-Sig', headers: { 'x-sig': 'x' } },
    'headers.x-sig',
  ],
  ['a reserved header', { headers: { 'Webhook-Id': 'x' } }, 'headers.Webhook-Id'],
  ['the signature in a reserved header', { signature_header: 'Content-Type' }, 'signature_header'],
  ['a control character', { headers: { 'X-Gate': 'a\r\nHost: b' } }, 'headers.X-Gate'],
])('creating a subscription with %s is a 400 that names the field', async (_, fields, field) => {
  const body = { ...SUBSCRIPTION_FIELDS, ...fields };
  const response = await harness.call('POST', account.path('/subscriptions'), { token: account.token, body });
  expect(problemsOf(response)).toEqual([400, [field]]);
  expect(response.json.status.user_message).toContain(field);
});

/** @param bytes size of the headers with their separators */
const headersOf = (bytes: number): Record<string, string> => {
  const names = ['X-A', 'X-B', 'X-C', 'X-D', 'X-E'];
  const valueBytes = bytes - names.length * ('X-A'.length + 4);
  const share = Math.floor(valueBytes / names.length);
  const values = names.map((_, index) => 'x'.repeat(index === 0 ? valueBytes - 4 * share : share));
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
};

test('headers of more than 8 KiB in total are a 400, and larger stored ones keep working', async () => {
  expect((await subscribe({ headers: headersOf(8_192) })).headers).toHaveProperty('X-E');
  const tooLarge = { ...SUBSCRIPTION_FIELDS, headers: headersOf(8_193) };
  const create = (body: object) =>
    harness.call('POST', account.path('/subscriptions'), { token: account.token, body });
  expect(problemsOf(await create(tooLarge))).toEqual([400, ['headers']]);

  const { id } = await subscribe();
  const stored = headersOf(10_275);
  const headersCiphertext = harness.secrets.encrypt(JSON.stringify(stored));
  const data = { headerNames: Object.keys(stored), headersCiphertext };
  await harness.database.prisma.subscription.update({ where: { id }, data });
  const { headers } = (await call('GET', id)).json.data;
  expect((await put(id, { name: 'Renamed', headers })).status).toBe(200);
  expect((await sentHeaders(id)).headers).toMatchObject({ 'x-e': stored['X-E'] });
  expect(problemsOf(await put(id, { headers: { ...headers, 'X-E': 'new' } }))).toEqual([400, ['headers']]);
});
