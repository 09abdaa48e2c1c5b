import type { Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress, type EgressOptions, type EgressResult } from '../src/egress.ts';
import {
  iterateUntil,
  type Listening,
  listen,
  rawServer,
  resetConnection,
  waitForClientRead,
} from './listening.ts';
import { GOT_GRACE_MS, passMs, startClock, stopClock } from './stopped-clock.ts';

const timeoutMs = 10_000;
const timeout = { code: 'timeout', message: 'Timed out after 10 s.' };
const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
let server: Listening;
let egress: Egress;
/** Sockets of the requests that arrived, in order; a connection may be here more than once. */
let arrived: Socket[];

beforeEach(() => {
  arrived = [];
  stopClock();
});
afterEach(async () => {
  egress.close();
  startClock();
  await server.close();
});

async function start(
  behaviour: Server = rawServer((socket) => void arrived.push(socket)),
  options: Partial<EgressOptions> = {},
): Promise<void> {
  server = await listen(behaviour);
  egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs, ...options });
}

/** A request and its result, null while it is pending. */
interface Posted {
  result: EgressResult | null;
  ended: Promise<EgressResult>;
}

function post(body: Buffer | string = '{}'): Posted {
  const ended = egress.post({ accountId: 1, url: `http://127.0.0.1:${server.port}/`, headers: {}, body });
  const posted: Posted = { result: null, ended };
  void ended.then((result) => {
    posted.result = result;
  });
  return posted;
}

async function arrival(count: number): Promise<Socket> {
  await iterateUntil(() => arrived.length >= count);
  return arrived[count - 1] as Socket;
}

describe('one deadline applies to the whole request, and no connection remains, when an endpoint', () => {
  const drip = (text: string) => [...text];
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n';
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

  test.each<[string, string[], string | null]>([
    ['accepts the connection and never responds', [], null],
    ['drips its headers', drip('HTTP/1.1 200 OK\r\nX-A: aaaa'), null],
    ['sends half a status line', ['HTTP/1.1 2'], null],
    ['sends interim responses from time to time', Array(12).fill('HTTP/1.1 102 P\r\n\r\n'), null],
    ['hangs after its headers', [head], ''],
    ['hangs within its body', [`${head}half`], 'half'],
    ['never ends a chunked body', [chunked, '2\r\nok\r\n'], 'ok'],
    ['drips its body', [head, ...drip('xxxxxxxxxxxx')], 'xxxxxxxxxxxx'],
    ['drips a chunked body', [chunked, ...Array(9).fill('1\r\ny\r\n')], 'yyyyyyyyy'],
  ])('%s (the received part is retained)', async (_name, pieces, body) => {
    await start();
    const posted = post();
    const socket = await arrival(1);
    const paceMs = Math.floor((timeoutMs - 1) / (pieces.length + 1));
    let sentBytes = 0;
    for (const piece of pieces) {
      await passMs(paceMs);
      socket.write(piece);
      sentBytes += piece.length;
      await waitForClientRead(socket, sentBytes);
    }
    await passMs(timeoutMs - 1 - paceMs * pieces.length);
    expect(posted.result).toBeNull();
    await passMs(1 + GOT_GRACE_MS);
    expect(posted.result).toMatchObject({
      error: timeout,
      response: body === null ? null : { statusCode: 200, body: Buffer.from(body), truncated: true },
    });
    await server.drained();
  });

  test('does not read the request', async () => {
    await start(
      rawServer((socket, nth) => {
        if (nth > 1) return;
        socket.pause();
        arrived.push(socket);
      }),
    );
    const posted = post(Buffer.alloc(30_000_000));
    const socket = await arrival(1);
    await passMs(timeoutMs - 1);
    expect(posted.result).toBeNull();
    await passMs(1 + GOT_GRACE_MS);
    expect(posted.result).toMatchObject({ error: timeout, response: null });
    socket.resume();
    await server.drained();
  });
});

test('a response after the deadline is a timeout and is not mistaken for the response to the next request', async () => {
  await start();
  const late = post();
  const socket = await arrival(1);
  await passMs(timeoutMs + GOT_GRACE_MS);
  expect(late.result?.error).toEqual(timeout);
  socket.write(RESPONSE.replace('ok', 'no'));
  const next = post();
  (await arrival(2)).write(RESPONSE);
  expect((await next.ended).response?.body.toString()).toBe('ok');
});

test('a name whose servers never respond is a timeout', async () => {
  await start(undefined, { lookup: () => {} });
  const ended = egress.post({ accountId: 1, url: 'http://slow.example/', headers: {}, body: '{}' });
  await passMs(timeoutMs + GOT_GRACE_MS);
  expect(await ended).toMatchObject({ response: null, error: timeout });
});

test('requests that wait for a connection have the same deadline', async () => {
  await start(undefined, { maxSocketsPerEndpoint: 1 });
  const posted = [post(), post(), post()];
  await arrival(1);
  await passMs(timeoutMs + GOT_GRACE_MS);
  for (const { ended } of posted) expect((await ended).error).toEqual(timeout);
  await server.drained();
});

test('a request whose reused connection broke is repeated within the same deadline', async () => {
  await start();
  const first = post();
  (await arrival(1)).write(RESPONSE);
  await first.ended;

  const posted = post();
  const reusedConnection = await arrival(2);
  await passMs(4_000);
  await resetConnection(reusedConnection);
  await arrival(3);
  await passMs(5_999);
  expect(posted.result).toBeNull();
  await passMs(1 + GOT_GRACE_MS);
  expect(posted.result?.error).toEqual(timeout);
});

/** got's deadline does not cover this: Node reports the end of such a request only when a connection is free for it. */
test('a repetition that waits for a connection has the same deadline, even if other requests occupy the connections for longer', async () => {
  await start(undefined, { maxSocketsPerEndpoint: 2 });
  const openers = [post(), post()];
  (await arrival(1)).write(RESPONSE);
  (await arrival(2)).write(RESPONSE);
  await Promise.all(openers.map(({ ended }) => ended));
  const posted = post();
  const connection = await arrival(3);

  // One second later, two other requests take both connections that repetitions may use.
  await passMs(1_000);
  const holders = [post()];
  await resetConnection(await arrival(4));
  await arrival(5);
  const reused = post();
  (await arrival(6)).write(RESPONSE);
  await reused.ended;
  holders.push(post());
  await resetConnection(await arrival(7));
  await arrival(8);

  await resetConnection(connection);
  await passMs(8_999);
  expect(posted.result).toBeNull();
  await passMs(1);
  expect(posted.result?.error).toEqual(timeout);
  expect(holders.map(({ result }) => result)).toEqual([null, null]);
  expect(arrived).toHaveLength(8);
});
