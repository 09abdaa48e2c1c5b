import { createServer, type RequestListener } from 'node:http';
import type { Server } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress, type EgressOptions } from '../src/egress.ts';
import { type Listening, listen, NO_DEADLINE_MS, rawServer } from './listening.ts';

let egress: Egress;
const servers: Listening[] = [];

async function start(behaviour: Server, options: Partial<EgressOptions> = {}): Promise<Listening> {
  const server = await listen(behaviour);
  servers.push(server);
  egress ??= createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS, ...options });
  return server;
}
const post = (server: Listening, accountId = 1) =>
  egress.post({ accountId, url: `http://127.0.0.1:${server.port}/`, headers: {}, body: Buffer.from('{}') });

/** Never closes idle connections. */
const keepAliveServer = (listener: RequestListener) => createServer({ keepAliveTimeout: 0 }, listener);

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

afterEach(async () => {
  egress.close();
  egress = undefined as never;
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

test('one connection is reused for one request after another', async () => {
  const server = await start(keepAliveServer((_request, response) => void response.end('ok')));
  for (let n = 0; n < 20; n += 1) expect((await post(server)).error).toBeNull();
  expect(server.connections).toBe(1);
});

test('an endpoint gets no more connections than its limit, and all its requests get through', async () => {
  const server = await start(
    keepAliveServer((_request, response) => void setTimeout(() => response.end('ok'), 5)),
    {
      maxSocketsPerEndpoint: 3,
    },
  );
  const results = await Promise.all(Array.from({ length: 30 }, () => post(server)));
  expect(results.filter(({ error }) => error === null)).toHaveLength(30);
  expect(server.connections).toBe(3);
});

test('idle connections are closed after the timeout', async () => {
  const server = await start(
    keepAliveServer((_request, response) => void response.end('ok')),
    { idleSocketTimeoutMs: 100 },
  );
  await post(server);
  await server.drained();
  expect(server.connections).toBe(1);
});

test('the number of idle connections is limited over all endpoints, and the longest idle one is closed first', async () => {
  const behaviour = () => keepAliveServer((_request, response) => void response.end('ok'));
  const first = await start(behaviour(), { idleSocketsMax: 2 });
  const second = await start(behaviour());
  const third = await start(behaviour());
  for (const server of [first, second, third]) await post(server);
  await first.drained();
  for (const server of [second, third]) await post(server);
  expect([first.connections, second.connections, third.connections]).toEqual([1, 1, 1]);
});

describe('a request whose reused connection the endpoint closes', () => {
  test('before the first byte of the response is repeated on a new connection', async () => {
    const server = await start(
      rawServer((socket, nth) => (nth === 1 ? socket.write(RESPONSE) : socket.resetAndDestroy())),
    );
    await post(server);
    const result = await post(server);
    expect(result).toMatchObject({ error: null, response: { statusCode: 200, body: Buffer.from('ok') } });
    expect(server.connections).toBe(2);
  });

  test('is repeated only once', async () => {
    let requests = 0;
    const server = await start(
      rawServer((socket) => {
        requests += 1;
        if (requests === 1) socket.write(RESPONSE);
        else socket.resetAndDestroy();
      }),
    );
    await post(server);
    expect((await post(server)).error?.code).toBe('connection_reset');
    expect(requests).toBe(3);
  });

  test('after a byte of the response is not repeated', async () => {
    let requests = 0;
    const server = await start(
      rawServer((socket) => {
        requests += 1;
        if (requests === 1) socket.write(RESPONSE);
        else socket.end('H');
      }),
    );
    await post(server);
    expect((await post(server)).error).not.toBeNull();
    expect(requests).toBe(2);
  });
});

test('a request on a new connection that breaks is not repeated', async () => {
  const server = await start(rawServer((socket) => void socket.resetAndDestroy()));
  expect((await post(server)).error?.code).toBe('connection_reset');
  expect(server.connections).toBe(1);
});

test('close() ends requests in flight, waiting and later ones, and leaves no connection', async () => {
  const server = await start(
    rawServer(() => {}),
    { maxSocketsPerEndpoint: 2 },
  );
  const inFlight = Array.from({ length: 5 }, () => post(server));
  await server.connected(2);
  egress.close();
  for (const result of await Promise.all(inFlight)) expect(result.error?.code).toBe('request_failed');
  expect((await post(server)).error?.code).toBe('request_failed');
  await server.drained();
  expect(server.connections).toBe(2);
});

test('a connection is not reused for another account, which would see that it exists', async () => {
  const server = await start(keepAliveServer((_request, response) => void response.end('ok')));
  for (let round = 0; round < 2; round += 1)
    for (const accountId of [1, 2]) expect((await post(server, accountId)).error).toBeNull();
  expect(server.connections).toBe(2);
});
