import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Receiver, type ReceiverResponse, startReceiver } from '@runhook/testing';
import { type Client, createClient, type Row, RunhookError } from '../src/index.ts';

const SUBSCRIPTIONS = '/api/v3/accounts/{account_id}/webhooks/subscriptions';
const DELIVERIES = '/api/v3/accounts/{account_id}/webhooks/deliveries';
const RUNS = '/api/v2/accounts/{account_id}/runs';
const FIELDS = { name: 'Pager', event_types: ['job.run.errored' as const], client_url: 'https://a.example/' };

let server: Receiver;
let client: Client;
const queue: ReceiverResponse[] = [];

beforeEach(async () => {
  server = await startReceiver();
  server.respondWith(() => queue.shift() ?? { status: 404 });
  client = createClient({ url: `${server.url}/below`, token: 'rhs_1', accountId: 7 });
});
afterEach(async () => {
  queue.length = 0;
  await server.close();
});

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  queue.push({
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: unknown) => error as RunhookError,
  );

test('a call has the path with its account, the query and the token, and returns the data of the envelope', async () => {
  json({ status: { code: 200 }, data: [{ id: 1 }] });
  expect(await client.get(RUNS, { query: { status: 'Errored', limit: 5 } })).toEqual([{ id: 1 }]);
  const [request] = server.requests;
  expect(request).toMatchObject({
    method: 'GET',
    path: '/below/api/v2/accounts/7/runs?status=Errored&limit=5',
  });
  expect(request?.headers).toMatchObject({ authorization: 'Token rhs_1' });
  await expect(createClient({ url: server.url, token: 'x' }).get(RUNS)).rejects.toThrow('needs account_id');
});

test('an error response is thrown with its status, its sentence for users and the problem of each field', async () => {
  const errors = [{ field: 'client_url', message: 'client_url must be a URL' }];
  const status = {
    code: 400,
    user_message: 'Invalid request: ….',
    developer_message: 'client_url: …',
    errors,
  };
  json({ status, data: null }, 400);
  const error = await failureOf(client.post(SUBSCRIPTIONS, { body: FIELDS }));
  expect(error).toBeInstanceOf(RunhookError);
  expect(error).toMatchObject({ status: 400, userMessage: 'Invalid request: ….', errors });
  expect(error.problemOf('client_url')).toBe('client_url must be a URL');
});

describe('a failed call', () => {
  test('is retried after the time of Retry-After with the same idempotency key, after a 429, a 503, or a 409 for a request that is still running', async () => {
    json({ status: {}, data: null }, 429, { 'retry-after': '0' });
    json({ status: {}, data: null }, 503, { 'retry-after': '0' });
    json({ status: {}, data: null }, 409, { 'retry-after': '0' });
    json({ status: {}, data: { id: 'wsu_1' } }, 201);
    expect(await client.post(SUBSCRIPTIONS, { body: FIELDS })).toEqual({ id: 'wsu_1' });
    const keys = server.requests.map(({ headers }) => headers['idempotency-key']);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(4);
  });

  test('is not retried if Retry-After exceeds its limit, after a 409 without Retry-After, or after a 503 of a DELETE', async () => {
    json({ status: {}, data: null }, 429, { 'retry-after': '61' });
    expect(await failureOf(client.get(RUNS))).toMatchObject({ status: 429, retryAfterSeconds: 61 });
    json({ status: {}, data: null }, 409);
    expect(await failureOf(client.post(SUBSCRIPTIONS, { body: FIELDS }))).toMatchObject({ status: 409 });
    json({ status: {}, data: null }, 503, { 'retry-after': '0' });
    const path = { webhook_id: 'wsu_1' };
    const deleting = client.delete('/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}', {
      path,
    });
    expect(await failureOf(deleting)).toMatchObject({ status: 503 });
    expect(server.requests).toHaveLength(3);
  });
});

test('list() yields every row of all pages, whether the next page is requested by offset or by next_before', async () => {
  const page = (rows: number[], pagination: object, offset?: number) =>
    json({
      status: {},
      data: rows,
      extra: { pagination: { count: rows.length, ...pagination }, filters: { offset } },
    });
  page([1, 2], { total_count: 3 }, 0);
  page([3], { total_count: 3 }, 2);
  const runs: Row<typeof RUNS>[] = [];
  for await (const run of client.list(RUNS)) runs.push(run);
  page([4], { next_before: '2026-01-31.5' });
  page([], { next_before: '2026-01-30.5' });
  page([5], { next_before: null });
  const deliveries: unknown[] = [];
  for await (const delivery of client.list(DELIVERIES, { query: { run_id: 7 } })) deliveries.push(delivery);
  expect([runs, deliveries]).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
  expect(server.requests.map(({ path }) => path.split('?')[1])).toEqual([
    undefined,
    'offset=2',
    'run_id=7',
    'run_id=7&before=2026-01-31.5',
    'run_id=7&before=2026-01-30.5',
  ]);
});

test('changes() reconnects after the end of a stream, and throws the error of a 401 response', async () => {
  const stream = (body: string) => queue.push({ headers: { 'content-type': 'text/event-stream' }, body });
  stream(': hello\n\nevent: changed\ndata: {"subscription_ids":["wsu_1"]}\n\n');
  stream('event: changed\ndata: {"subscription_ids":["wsu_2","wsu_3"]}\n\n');
  json({ status: { user_message: 'Invalid token.' }, data: null }, 401);
  const changes: unknown[] = [];
  const listener = (async () => {
    for await (const change of client.changes({ webhookId: 'wsu_1' })) changes.push(change);
  })();
  expect(await failureOf(listener)).toMatchObject({ status: 401, userMessage: 'Invalid token.' });
  expect(changes).toEqual([
    { kind: 'connected' },
    { kind: 'changed', webhookIds: ['wsu_1'] },
    { kind: 'connected' },
    { kind: 'changed', webhookIds: ['wsu_2', 'wsu_3'] },
  ]);
  expect(server.requests[0]?.path).toBe('/below/api/v3/accounts/7/webhooks/changes?subscription_id=wsu_1');
});

test('a response that is not from Runhook, a redirect, an unreachable server and an invalid URL are errors', async () => {
  queue.push({ status: 200, body: '<html>' }, { status: 302, headers: { location: 'http://127.0.0.1:1/' } });
  expect(await failureOf(client.get(RUNS))).toMatchObject({
    message: 'The response is not from Runhook: check the URL.',
  });
  expect(await failureOf(client.get(RUNS))).toMatchObject({ status: 302 });
  const unreachable = createClient({ url: 'http://127.0.0.1:1', token: 'x', accountId: 1, retriesMax: 0 });
  expect(await failureOf(unreachable.get(RUNS))).toMatchObject({ status: 0 });
  expect(() => createClient({ url: 'ftp://a', token: 'x' })).toThrow(TypeError);
});

describe('an artifact', () => {
  test('is sent with its length, and again after a 503', async () => {
    json({ status: {}, data: null }, 503, { 'retry-after': '0' });
    json({ status: {}, data: { path: 'a b/x.json' } }, 201);
    const file = { runId: 5, path: 'a b/x.json', step: 2, content: Buffer.from('{"a": 1}') };
    expect(await client.putArtifact(file)).toEqual({ path: 'a b/x.json' });
    expect(server.requests).toHaveLength(2);
    for (const { method, path, body, headers } of server.requests) {
      expect([method, path]).toEqual([
        'PUT',
        '/below/api/v2/accounts/7/runs/5/artifacts/a%20b/x.json?step=2',
      ]);
      expect([body.toString(), headers['content-length']]).toEqual(['{"a": 1}', '8']);
    }
  });

  test.each(['', '..', '../finish', 'a/../../b', './a', '/a', 'a//b', 'a/'])(
    'of the path "%s" is not sent, because a URL would resolve the path',
    async (path) => {
      await expect(client.putArtifact({ runId: 5, path, content: 'x' })).rejects.toThrow(TypeError);
      await expect(client.getArtifact({ runId: 5, path })).rejects.toThrow(TypeError);
      expect(server.requests).toEqual([]);
    },
  );

  test('is returned unread, and an error is thrown as that of any call', async () => {
    queue.push({ status: 200, body: 'bytes' });
    const response = await client.getArtifact({ runId: 5, path: 'x.bin' });
    expect(await response.text()).toBe('bytes');
    json({ status: { user_message: 'The run has no such artifact.' }, data: null }, 404);
    const missing = client.getArtifact({ runId: 5, path: 'y.bin' });
    expect(await failureOf(missing)).toMatchObject({ status: 404, message: 'The run has no such artifact.' });
  });
});
