import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DatabaseUnreachableError } from '@runhook/database';
import type { AccountBudgets } from '../../src/http/account-budgets.ts';
import { type Access, READ_WEBHOOKS } from '../../src/http/endpoint.ts';
import type { EndpointResponse } from '../../src/http/envelope.ts';
import { TooManyRequestsError } from '../../src/http/errors.ts';
import { NO_RECORDING } from '../../src/http/idempotency.ts';
import { type HttpServer, listen } from '../../src/http/listen.ts';
import { createHttpApp } from '../../src/http/server.ts';
import type { Principal } from '../../src/identity/principals.ts';
import { callApi, failure } from '../harness.ts';

interface LogLine {
  level: string;
  fields: Record<string, unknown>;
  message: string;
}

const PATH = '/api/v3/accounts/:account_id/things/:thing_id';
const account = { id: 7, identifier: 'act_7', plan: 'team', deployment: 'multi_tenant' } as const;
const principal: Principal = { kind: 'service_token', tokenId: 1, account, permissionSets: [] };
const token = 'a-very-secret-token';

/** Replaces the budgets of accounts. */
const NO_BUDGET: AccountBudgets['slowReads'] = { run: (_, work) => work() };

let lines: LogLine[];
let lineWritten: () => void;
let requestLine: Promise<void>;
let server: HttpServer;
let handle: () => Promise<EndpointResponse>;

beforeEach(async () => {
  lines = [];
  requestLine = new Promise((resolve) => {
    lineWritten = resolve;
  });
  const write = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields: { ...fields }, message });
    if (message === 'request') lineWritten();
  };
  const access: Access = READ_WEBHOOKS;
  const log = { info: write('info'), warn: write('warn'), error: write('error') };
  const app = createHttpApp({
    endpoints: [
      {
        method: 'POST',
        path: PATH,
        access,
        handle: async (request) => request.recorder.record(undefined as never, await handle()),
      },
    ],
    routing: {
      findPrincipal: async (credential) =>
        credential === token ? { principal, version: '1', validMs: null } : null,
      findSession: async () => null,
      budgets: {
        requests: { ...NO_BUDGET, runWithoutSlot: NO_BUDGET.run },
        slowReads: NO_BUDGET,
        endpointTests: { ...NO_BUDGET, requireCapacity: () => undefined },
        largeBodies: NO_BUDGET,
      },
      reads: { recordWrite: () => undefined },
      writes: { track: (_, work) => work() },
      requestLimit: { consume: async () => ({ kind: 'accepted' }) },
      keyLimit: { consume: async () => ({ kind: 'accepted' }) },
      idempotency: { runOnce: (_, work) => work(NO_RECORDING) },
    },
    trustedProxyCidrs: [],
    probes: async () => false,
    log,
  });
  server = await listen(app, { host: '127.0.0.1', port: 0, log });
});

afterEach(() => server.close());

async function post(path: string) {
  const origin = `http://127.0.0.1:${server.port}`;
  const options = { token, body: { hmac_secret: 'body-secret' } };
  const response = await callApi(origin, 'POST', path, options, fetch);
  await requestLine;
  return response;
}

const QUERY = '/api/v3/accounts/7/things/path-secret?key=query-secret';

describe('the log line of a request', () => {
  test('contains nothing that the caller sent', async () => {
    handle = async () => ({ code: 200, data: { secret: 'answer-secret' } });
    const { headers } = await post(QUERY);
    expect(lines).toEqual([
      {
        level: 'info',
        message: 'request',
        fields: {
          method: 'POST',
          route: PATH,
          status: 200,
          durationMs: expect.any(Number),
          requestId: headers.get('x-request-id'),
          caller: { kind: 'service_token', id: 1 },
          accountId: 7,
        },
      },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/secret/);
  });

  test('omits an unknown path', async () => {
    await post('/unknown-secret');
    expect(lines.map(({ fields }) => fields)).toMatchObject([{ route: null, status: 404, accountId: null }]);
    expect(JSON.stringify(lines)).not.toMatch(/secret/);
  });

  test('has no status when the caller disconnected', async () => {
    let reached = () => {};
    const inHandler = new Promise<void>((resolve) => {
      reached = resolve;
    });
    let response = () => {};
    const responseSent = new Promise<void>((resolve) => {
      response = resolve;
    });
    handle = async () => {
      reached();
      await responseSent;
      return { code: 200, data: null };
    };
    const caller = new AbortController();
    const url = `http://127.0.0.1:${server.port}${QUERY}`;
    const request = fetch(url, {
      method: 'POST',
      headers: { authorization: `Token ${token}` },
      signal: caller.signal,
    });
    await inHandler;
    caller.abort();
    await expect(request).rejects.toThrow();
    await requestLine;
    expect(lines.map(({ fields }) => fields)).toMatchObject([{ route: PATH, status: null, accountId: 7 }]);
    response();
  });
});

describe('an error thrown by a handler', () => {
  test('is a 500 that shows only the request id, under which the log has the error', async () => {
    const fault = new Error('SELECT secret FROM internals');
    handle = async () => {
      throw fault;
    };
    const { status, headers, json } = await post(QUERY);
    const requestId = headers.get('x-request-id');
    expect({ status, json }).toEqual({
      status: 500,
      json: failure(500, 'Something went wrong.', `request id: ${requestId}`),
    });
    expect(lines[0]).toMatchObject({ level: 'error', fields: { err: fault, requestId, route: PATH } });
    expect(lines).toHaveLength(2);
  });

  test('is a 500 when the thrown value is not an error', async () => {
    for (const thrown of [undefined, null, 'text', { status: 418, type: 'entity.parse.failed' }]) {
      handle = () => Promise.reject(thrown);
      expect((await post(QUERY)).status).toBe(500);
    }
  });

  test('is a 503 with Retry-After when the database is unavailable', async () => {
    handle = async () => {
      throw new DatabaseUnreachableError('postgres://secret');
    };
    const { status, headers, json } = await post(QUERY);
    expect({ status, json }).toEqual({
      status: 503,
      json: failure(503, 'The service is temporarily unavailable.'),
    });
    expect(headers.get('retry-after')).toBe('5');
  });

  test('is a 429 with Retry-After when there were too many requests', async () => {
    handle = async () => {
      throw new TooManyRequestsError(17);
    };
    const { status, headers, json } = await post(QUERY);
    expect({ status, json }).toEqual({ status: 429, json: failure(429, 'Too many requests.') });
    expect(headers.get('retry-after')).toBe('17');
  });
});

test('closing the server waits for the request in flight and then closes its connection', async () => {
  let reached = () => {};
  let finish = () => {};
  const inHandler = new Promise<void>((resolve) => {
    reached = resolve;
  });
  handle = async () => {
    reached();
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return { code: 200, data: 'done' };
  };
  const response = post(QUERY);
  await inHandler;
  const closing = server.close();
  finish();
  expect((await response).json.data).toBe('done');
  await closing;
  await expect(post(QUERY)).rejects.toThrow();
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  server = await listen(() => undefined, { host: '127.0.0.1', port: 0, log });
});
