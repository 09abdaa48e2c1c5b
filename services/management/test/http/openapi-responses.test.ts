import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DELIVERY_EXAMPLE } from '../../src/deliveries/openapi.ts';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import { RUNNING_EXAMPLE } from '../../src/runs/schemas-openapi.ts';
import {
  CREATED_SUBSCRIPTION_EXAMPLE,
  SUBSCRIPTION_EXAMPLE,
  SUBSCRIPTION_FIELDS_EXAMPLE,
} from '../../src/subscriptions/openapi.ts';
import { failure, type Harness, startHarness } from '../harness.ts';
import { createResponseChecker, type Exchange } from '../response-checker.ts';

const check = createResponseChecker(openApiDocument());

const SUBSCRIPTIONS = '/api/v3/accounts/1/webhooks/subscriptions';
const SUBSCRIPTION = `/api/v3/accounts/1/webhooks/subscription/${SUBSCRIPTION_EXAMPLE.id}`;

type PartialExchange = Partial<Omit<Exchange, 'body' | 'headers'>> & {
  body?: unknown;
  headers?: Record<string, string>;
};

function checkExchange({
  method = 'GET',
  path = SUBSCRIPTION,
  status = 200,
  headers = {},
  ...overrides
}: PartialExchange) {
  const { body = { data: SUBSCRIPTION_EXAMPLE, status: { code: status } }, requestBody } = overrides;
  return check({
    method,
    path,
    status,
    requestBody,
    headers: new Headers({ 'content-type': 'application/json', ...headers }),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

const withData = (changes: object) => ({
  data: { ...SUBSCRIPTION_EXAMPLE, ...changes },
  status: { code: 200 },
});
const page = (data: unknown) => ({
  data,
  status: { code: 200 },
  extra: { pagination: { total_count: 1, count: 1 }, filters: { offset: 0, limit: 10 } },
});

describe('the checker of tests accepts a response that matches the OpenAPI document', () => {
  test.each<[string, PartialExchange]>([
    ['a subscription', {}],
    ['with a slash and a query', { path: `${SUBSCRIPTION}/?x=1` }],
    ['without an optional field', { body: JSON.stringify(withData({ dispatched_at: undefined })) }],
    ['a list', { path: SUBSCRIPTIONS, body: page([SUBSCRIPTION_EXAMPLE]) }],
    ['to HEAD', { method: 'HEAD', body: '' }],
    ['an error', { status: 404, body: failure(404, 'Webhook not found.') }],
    [
      'another method',
      { method: 'PATCH', status: 405, headers: { allow: 'GET' }, body: failure(405, 'No.') },
    ],
    ['an unknown path', { path: '/api/v9/nothing', status: 404, body: failure(404, 'Not found.') }],
    ['a path outside of the API', { path: '/metrics', body: 'up 1' }],
  ])('in this case: %s', (_, exchange) => {
    expect(checkExchange(exchange)).toBeNull();
  });
});

describe('the checker of tests rejects a response that does not match the OpenAPI document', () => {
  test.each<[string, PartialExchange, string]>([
    [
      'a field too many',
      { body: withData({ nickname: 'x' }) },
      'body/data must NOT have additional properties: nickname',
    ],
    ['a secret where none belongs', { body: withData({ hmac_secret: 'whsec_' }) }, ': hmac_secret'],
    ['a field too few', { body: withData({ name: undefined }) }, "must have required property 'name'"],
    [
      'an integer for a string id',
      { body: withData({ account_id: 1 }) },
      'body/data/account_id must be string: 1',
    ],
    ['integers for job ids', { body: withData({ job_ids: [12] }) }, 'body/data/job_ids/0 must be string: 12'],
    [
      'an integer for a status',
      { body: withData({ http_status_code: 200 }) },
      'body/data/http_status_code must be',
    ],
    [
      'a date for a time',
      { body: withData({ created_at: '2026-11-20' }) },
      'body/data/created_at must match pattern',
    ],
    [
      'null for absence',
      { body: withData({ dispatched_at: null }) },
      'body/data/dispatched_at must be string: null',
    ],
    [
      'an unknown event type',
      { body: withData({ event_types: ['x'] }) },
      'body/data/event_types/0 must be equal to one',
    ],
    ['another id', { body: withData({ id: 'wdl_x' }) }, 'body/data/id must match pattern'],
    [
      'another code',
      { body: { data: SUBSCRIPTION_EXAMPLE, status: { code: 201 } } },
      'body/status/code is 201',
    ],
    ['no envelope', { body: SUBSCRIPTION_EXAMPLE }, "body must have required property 'data'"],
    ['an additional field of the envelope', { body: { ...withData({}), message: 'x' } }, ': message'],
    [
      'is_success where none belongs',
      { body: { ...withData({}), status: { code: 200, is_success: true } } },
      ': is_success',
    ],
    ['no JSON', { body: '<html>' }, 'body must be object'],
    ['another content type', { headers: { 'content-type': 'text/html' } }, 'the content type is text/html'],
    [
      'a list without its page',
      { path: SUBSCRIPTIONS, body: { data: [], status: { code: 200 } } },
      "'extra'",
    ],
    [
      'a secret in a list',
      { path: SUBSCRIPTIONS, body: page([CREATED_SUBSCRIPTION_EXAMPLE]) },
      ': hmac_secret',
    ],
    [
      'an undocumented status',
      { status: 418, body: failure(418, 'Teapot.') },
      'the status is not listed; these are: 200,',
    ],
    [
      'a 200 for a create',
      { method: 'POST', path: SUBSCRIPTIONS },
      'the status is not listed; these are: 201,',
    ],
    [
      'a fault',
      { status: 500, body: failure(500, 'Something went wrong.') },
      'status 500: a defect of the service',
    ],
    [
      'an error of another shape',
      { status: 404, body: { error: 'x' } },
      "body must have required property 'status'",
    ],
    [
      'a 503 without Retry-After',
      { status: 503, body: failure(503, 'Away.') },
      'the header Retry-After is missing',
    ],
    ['a path without an entry', { path: '/api/v9/nothing', body: {} }, 'the path has no entry'],
    ['a method without an entry', { method: 'PATCH' }, 'the path has no such method'],
    [
      'a create without its secret',
      { method: 'POST', path: SUBSCRIPTIONS, status: 201 },
      "body/data must have required property 'hmac_secret'",
    ],
    [
      'a deletion without is_success',
      { method: 'DELETE', body: { data: { id: SUBSCRIPTION_EXAMPLE.id }, status: { code: 200 } } },
      "body/status must have required property 'is_success'",
    ],
    [
      'a delivery with an integer run',
      { path: `${SUBSCRIPTION}/deliveries`, body: page([{ ...DELIVERY_EXAMPLE, run_id: 345 }]) },
      'body/data/0/run_id must be string: 345',
    ],
    [
      'a run with a string id',
      {
        path: '/api/v2/accounts/1/runs/345/',
        body: { data: { ...RUNNING_EXAMPLE, id: '345' }, status: { code: 200 } },
      },
      'body/data/id must be integer: "345"',
    ],
    [
      'accepting a request that the document does not allow',
      { method: 'PUT', requestBody: JSON.stringify({ ...SUBSCRIPTION_FIELDS_EXAMPLE, active: 'yes' }) },
      'accepted, though body of the request/active must be boolean: "yes"',
    ],
  ])('in this case: %s', (_, exchange, problem) => {
    const lines = checkExchange(exchange)?.split('\n') ?? [];
    expect(lines[0]).toMatch(
      /^[A-Z]+ \/api\/\S+ got the response \d+, which is not what the OpenAPI document says:$/,
    );
    expect(lines.filter((line) => line.includes(problem))).not.toEqual([]);
  });
});

describe('a request of a test', () => {
  let harness: Harness;

  beforeAll(async () => {
    harness = await startHarness();
  });

  afterAll(() => harness.close());

  test('fails when the response does not match the document', async () => {
    const account = await harness.newAccount();
    const { id } = await harness.newSubscription(account);
    const get = () => harness.call('GET', account.path(`/subscription/${id}`), { token: account.token });
    expect((await get()).status).toBe(200);
    // The document does not permit the status 7, but the database stores it.
    await harness.database.pool.query('UPDATE subscriptions SET http_status_code = 7 WHERE id = $1', [id]);
    await expect(get()).rejects.toThrow('body/data/http_status_code must match pattern');
  });
});
