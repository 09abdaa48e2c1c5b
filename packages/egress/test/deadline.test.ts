import { createServer } from 'node:http';
import type { Server, Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress } from '../src/index.ts';
import { type Listening, listen, rawServer } from './listening.ts';

const timeoutMs = 300;
const body = Buffer.from('{}');
let server: Listening;
let egress: Egress;

async function postTo(behaviour: Server, options: { maxSocketsPerEndpoint?: number } = {}) {
  server = await listen(behaviour);
  egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs, ...options });
  return post();
}
const post = () => egress.post({ url: `http://127.0.0.1:${server.port}/`, headers: {}, body });

/** Writes the text one character at a time, forever slower than anyone wants to wait. */
function drip(socket: Socket, text: string): void {
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(text[sent % text.length] ?? '');
    sent += 1;
  }, 30);
  socket.on('close', () => clearInterval(timer));
}

const timeout = { code: 'timeout', message: 'Timed out after 0.3 s.' };

afterEach(async () => {
  egress.close();
  await server.close();
});

describe('one deadline covers everything, and no connection is left after it, when an endpoint', () => {
  const silent: [string, Server][] = [
    ['accepts and never answers', rawServer(() => {})],
    [
      'drips its headers',
      rawServer(
        (socket, nth) => void (nth === 1 && drip(socket, 'HTTP/1.1 200 OK\r\nX-A: aaaaaaaaaaaaaaaaa')),
      ),
    ],
    ['sends half a status line', rawServer((socket) => void socket.write('HTTP/1.1 2'))],
    [
      'sends 1xx answers now and then',
      rawServer((socket, nth) => void (nth === 1 && drip(socket, 'HTTP/1.1 102 P\r\n\r\n'))),
    ],
  ];
  test.each(silent)('%s', async (_name, behaviour) => {
    const result = await postTo(behaviour);
    expect(result).toMatchObject({ response: null, error: timeout });
    expect(result.durationMs).toBeGreaterThanOrEqual(timeoutMs - 1);
    expect(result.durationMs).toBeLessThan(timeoutMs + 200);
    await server.drained();
  });

  const begun: [string, Server, string][] = [
    [
      'hangs after its headers',
      rawServer((s) => void s.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n')),
      '',
    ],
    [
      'hangs within its body',
      rawServer((s) => void s.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')),
      'half',
    ],
    [
      'never ends a chunked body',
      rawServer((s) => void s.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n')),
      'ok',
    ],
  ];
  test.each(begun)('%s; what had come is kept', async (_name, behaviour, partial) => {
    const result = await postTo(behaviour);
    expect(result.error).toEqual(timeout);
    expect(result.response).toMatchObject({ statusCode: 200, body: Buffer.from(partial), truncated: false });
    await server.drained();
  });

  test('drips its body; what had come is kept', async () => {
    const result = await postTo(
      createServer((_request, response) => {
        response.writeHead(200, { 'content-length': 1_000 });
        const timer = setInterval(() => response.write('x'), 30);
        response.on('close', () => clearInterval(timer));
      }),
    );
    expect(result.error).toEqual(timeout);
    expect(result.response?.statusCode).toBe(200);
    expect(result.response?.body.toString()).toMatch(/^x{2,}$/);
    await server.drained();
  });
});

test('an answer after the deadline is a timeout, and does not reach the next request', async () => {
  let requests = 0;
  const first = await postTo(
    createServer((_request, response) => {
      requests += 1;
      if (requests > 1) response.end('second');
      else setTimeout(() => response.end('first'), timeoutMs + 100);
    }),
  );
  expect(first.error).toEqual(timeout);
  expect((await post()).response?.body.toString()).toBe('second');
});

test('a request that waits for a connection to its endpoint is under the same deadline', async () => {
  const waiting = [
    postTo(
      rawServer(() => {}),
      { maxSocketsPerEndpoint: 1 },
    ),
  ];
  await waiting[0];
  const results = await Promise.all([post(), post(), post()]);
  for (const result of results) {
    expect(result.error).toEqual(timeout);
    expect(result.durationMs).toBeLessThan(timeoutMs + 200);
  }
  await server.drained();
});

test('a name whose servers never answer is a timeout', async () => {
  server = await listen(rawServer(() => {}));
  egress = createEgress({ allowCidrs: [], timeoutMs, lookup: () => {} });
  const result = await egress.post({ url: 'http://slow.example/', headers: {}, body });
  expect(result).toMatchObject({ response: null, error: timeout });
});
