import { once } from 'node:events';
import { Agent, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@runhook/testing';
import { markUpload } from '../../src/http/file-upload.ts';
import { listen } from '../../src/http/listen.ts';
import {
  failure,
  GENEROUS_TIMEOUTS,
  type Harness,
  type Json,
  startHarness,
  type TestAccount,
} from '../harness.ts';

let harness: Harness;
let account: TestAccount;

/** Timeouts that are short because tests wait for them to expire. */
const SHORT = { bodyMs: 500, clients: { headersMs: 500, lingerMs: 200 } };

beforeAll(async () => {
  harness = await startHarness({}, { timeouts: { ...GENEROUS_TIMEOUTS, ...SHORT } });
  account = await harness.newAccount();
});
afterAll(() => harness.close());

interface RawResponse {
  head: string;
  status: number;
  json: Json;
}

/** Sends raw bytes and resolves with the complete response once the server has closed the connection. */
async function exchange(text: string): Promise<string> {
  const socket = connect(Number(new URL(harness.origin).port), '127.0.0.1');
  let received = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk;
  });
  socket.on('error', () => undefined);
  socket.write(text);
  await once(socket, 'close');
  return received;
}

async function send(text: string): Promise<RawResponse> {
  const received = await exchange(text);
  const end = received.indexOf('\r\n\r\n');
  const head = received.slice(0, end);
  return { head, status: Number(head.split(' ')[1]), json: JSON.parse(received.slice(end + 4) || 'null') };
}

const head = (first: string, ...lines: string[]) => [first, ...lines, '', ''].join('\r\n');
const LIST = 'GET /api/v2/accounts HTTP/1.1';
const CLOSE = 'Connection: close';
const notHttp = failure(400, 'Invalid request: request must be HTTP/1.1.', 'request: must be HTTP/1.1');
const duplicateHost = failure(400, 'Invalid request: Host must be given once.', 'Host: must be given once');

const create = (...lines: string[]) =>
  head(
    `POST ${account.path('/subscriptions')} HTTP/1.1`,
    'Host: a',
    'Content-Type: application/json',
    ...lines,
  );
const byToken = () => `Authorization: Token ${account.token}`;

const MALFORMED: [string, () => string, object][] = [
  ['no request line', () => head('NONSENSE'), notHttp],
  ['a line of another protocol', () => `${head('PRI * HTTP/2.0')}SM\r\n\r\n`, notHttp],
  ['a control character in a header', () => head(LIST, 'Host: a', 'X-Odd: a\x01b'), notHttp],
  ['a space before the colon', () => head(LIST, 'Host: a', 'X-Odd : a'), notHttp],
  [
    'Content-Length and Transfer-Encoding',
    () => `${create(byToken(), 'Content-Length: 2', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    notHttp,
  ],
  ['two Host headers', () => head(LIST, 'Host: a', 'Host: b', CLOSE), duplicateHost],
  ['no Host header', () => head(LIST, CLOSE), duplicateHost],
  [
    'headers of 20 KiB',
    () => head(LIST, 'Host: a', `X-Odd: ${'a'.repeat(20_480)}`),
    failure(431, 'The request’s headers are too large.'),
  ],
  [
    'an unsupported Expect header',
    () => head(LIST, 'Host: a', 'Expect: miracles', CLOSE),
    failure(417, 'The Expect header is not supported.'),
  ],
  [
    'the method CONNECT',
    () => head('CONNECT db:5432 HTTP/1.1', 'Host: a'),
    failure(405, 'Method CONNECT is not allowed here.', 'allowed: '),
  ],
];

test.each(MALFORMED)('a request with %s is rejected with the error envelope', async (_, text, json) => {
  const { head, status, json: responseBody } = await send(text());
  expect(responseBody).toEqual(json);
  expect(responseBody.status.code).toBe(status);
  expect(head).toMatch(/^content-type: application\/json; charset=utf-8$/im);
  expect(head).toMatch(/^x-request-id: \S+$/im);
});

const TIMED_OUT = failure(408, 'The request took too long to arrive.');

test('incomplete headers are a 408, and the connection is closed', async () => {
  expect(await send(`${LIST}\r\nHost: a\r\nX-Slow: a`)).toMatchObject({ status: 408, json: TIMED_OUT });
});

test('a silent connection is closed', async () => {
  expect(await exchange('')).toMatch(/^HTTP\/1\.1 408 /);
});

test('an incomplete body is a 408, and the connection is closed', async () => {
  const partialRequest = `${create(byToken(), 'Content-Length: 100')}{`;
  expect(await send(partialRequest)).toMatchObject({ status: 408, json: TIMED_OUT });
});

test('a request without a credential is rejected before its body arrives, and the connection is closed', async () => {
  const countsBefore = await harness.rowCounts();
  const partialRequest = `${create('Content-Length: 100')}{`;
  expect(await send(partialRequest)).toMatchObject({ status: 401, json: failure(401, 'Invalid token.') });
  expect(await harness.rowCounts()).toEqual(countsBefore);
});

test('an incomplete body of a sign-in, which needs no credential, is a 408', async () => {
  const requestLine = 'POST /api/v3/session HTTP/1.1';
  const partialRequest = `${head(requestLine, 'Host: a', 'Content-Type: application/json', 'Content-Length: 100')}{`;
  expect(await send(partialRequest)).toMatchObject({ status: 408, json: TIMED_OUT });
});

test('a body whose stated length is too large is rejected before it arrives', async () => {
  const partialRequest = create(byToken(), 'Content-Length: 1000000000');
  expect(await send(partialRequest)).toMatchObject({
    status: 413,
    json: failure(413, 'The request body is too large.'),
  });
});

test('Expect: 100-continue gets a 100 only if the request is admitted', async () => {
  const expectHeaders = ['Content-Length: 2', 'Expect: 100-continue', CLOSE];
  expect(await exchange(create(...expectHeaders))).toMatch(/^HTTP\/1\.1 401 /);
  expect(await exchange(`${create(byToken(), ...expectHeaders)}{}`)).toMatch(
    /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /,
  );
});

test('a client may send the rest of a rejected file for longer than that of another body, while it arrives', async () => {
  const log = { info() {}, warn() {}, error() {} };
  const lingerMs = 600;
  const handleRequest = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/file') markUpload(request);
    response.end(request.url);
  };
  const options = { host: '127.0.0.1', port: 0, log, clientTimeouts: { lingerMs } };
  const server = await listen(handleRequest, options);
  const socket = connect(server.port, '127.0.0.1');
  let received = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk;
  });
  socket.write(head('PUT /file HTTP/1.1', 'Host: a', 'Content-Length: 400000'));
  await eventually(async () => expect(received).toMatch(/\/file$/));
  for (let part = 1; part <= 4; part += 1) {
    await setTimeout(lingerMs / 2);
    socket.write('x'.repeat(100_000));
  }
  // The connection is usable, and closed after the rest of a body that is no file, or does not arrive.
  socket.write(head('PUT /other HTTP/1.1', 'Host: a', 'Content-Length: 400000'));
  await once(socket, 'close');
  expect(received).toMatch(/\/other$/);
  const silent = connect(server.port, '127.0.0.1').resume();
  silent.write(head('PUT /file HTTP/1.1', 'Host: a', 'Content-Length: 400000'));
  await once(silent, 'close');
  await server.close();
});

test('an idle keep-alive connection does not retain its last response', async () => {
  const responseRefs: WeakRef<ServerResponse>[] = [];
  const handleRequest = (_request: IncomingMessage, response: ServerResponse) => {
    responseRefs.push(new WeakRef(response));
    response.end('{}');
  };
  const log = { info() {}, warn() {}, error() {} };
  const server = await listen(handleRequest, { host: '127.0.0.1', port: 0, log });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const [message] = (await once(get({ host: '127.0.0.1', port: server.port, agent }), 'response')) as [
    IncomingMessage,
  ];
  const idle = once(agent, 'free');
  await once(message.resume(), 'end');
  await idle;
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  // Objects that an iteration of the event loop has dereferenced stay alive until it ends.
  await eventually(async () => {
    collect();
    expect(responseRefs.map((one) => one.deref())).toEqual([undefined]);
  });
  expect(Object.values(agent.freeSockets)).toHaveLength(1);
  agent.destroy();
  await server.close();
});
