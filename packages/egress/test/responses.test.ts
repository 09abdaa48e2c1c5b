import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from '@jest/globals';
import { createEgress, type Egress } from '../src/egress.ts';
import { type Listening, listen, NO_DEADLINE_MS } from './listening.ts';

let server: Listening;
let egress: Egress;

async function start(listener: RequestListener, options: { responseBytesMax?: number } = {}): Promise<void> {
  server = await listen(createServer(listener));
  egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS, ...options });
}

const post = (path = '/', headers: Record<string, string> = {}, body = Buffer.from('{"a":1}')) =>
  egress.post({ accountId: 1, url: `http://127.0.0.1:${server.port}${path}`, headers, body });

afterEach(async () => {
  egress.close();
  await server.close();
});

test('the exact bytes and headers arrive, without headers of the library', async () => {
  const body = Buffer.from([0, 255, 1, 254, 10, 13]);
  const received: { request: IncomingMessage; body: Buffer }[] = [];
  await start((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ request, body: Buffer.concat(chunks) });
      response.writeHead(201, { 'x-answer': 'yes' }).end('thanks');
    });
  });

  const result = await post(
    '/hook?a=%2F&b',
    { Authorization: 'abc', 'content-type': 'application/json' },
    body,
  );

  expect(received[0]?.request.method).toBe('POST');
  expect(received[0]?.request.url).toBe('/hook?a=%2F&b');
  expect(received[0]?.body).toEqual(body);
  expect(received[0]?.request.headers).toEqual({
    authorization: 'abc',
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'content-length': '6',
    host: `127.0.0.1:${server.port}`,
    connection: 'keep-alive',
  });
  expect(result.error).toBeNull();
  expect(result.response).toMatchObject({ statusCode: 201, body: Buffer.from('thanks'), truncated: false });
  expect(result.response?.headers).toMatchObject({ 'x-answer': 'yes' });
  expect(result.startedAt).toBeInstanceOf(Date);
  expect(Number.isInteger(result.durationMs)).toBe(true);
});

test.each([200, 204, 304, 400, 404, 410, 429, 500, 503])(
  'the status %i is a response and not an error',
  async (status) => {
    await start((_request, response) => void response.writeHead(status).end());
    const result = await post();
    expect(result.error).toBeNull();
    expect(result.response?.statusCode).toBe(status);
  },
);

test.each([301, 302, 303, 307, 308])(
  'a redirect with the status %i is returned and not followed',
  async (status) => {
    let requests = 0;
    await start((_request, response) => {
      requests += 1;
      response.writeHead(status, { location: '/elsewhere' }).end();
    });
    const result = await post();
    expect(result.response).toMatchObject({ statusCode: status, headers: { location: '/elsewhere' } });
    expect(requests).toBe(1);
  },
);

test('several values of one response header are joined', async () => {
  await start((_request, response) => {
    response
      .writeHead(
        200,
        [
          ['set-cookie', 'a=1'],
          ['set-cookie', 'b=2'],
          ['x-n', '1'],
          ['x-n', '2'],
        ].flat(),
      )
      .end();
  });
  const result = await post();
  expect(result.response?.headers).toMatchObject({ 'set-cookie': 'a=1, b=2', 'x-n': '1, 2' });
});

test('cookies of a response are not sent in later requests', async () => {
  const cookies: unknown[] = [];
  await start((request, response) => {
    cookies.push(request.headers.cookie);
    response.writeHead(200, { 'set-cookie': 'a=1' }).end();
  });
  await post();
  await post();
  expect(cookies).toEqual([undefined, undefined]);
});

test('a compressed body is not decompressed', async () => {
  const bomb = gzipSync(Buffer.alloc(10_000_000));
  await start((_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb));
  const result = await post();
  expect(result.response?.body.equals(bomb)).toBe(true);
  expect(result.response?.truncated).toBe(false);
});

test.each([
  [0, false],
  [99, false],
  [100, false],
  [101, true],
  [5_000_000, true],
])('of a body of %i bytes at most 100 are retained (truncated: %s)', async (size, truncated) => {
  await start((_request, response) => void response.end(Buffer.alloc(size, 'x')), { responseBytesMax: 100 });
  const result = await post();
  expect(result.error).toBeNull();
  expect(result.response?.body.length).toBe(Math.min(size, 100));
  expect(result.response?.truncated).toBe(truncated);
  if (truncated) await server.drained();
});

test('NUL bytes and invalid UTF-8 in a body are returned unchanged', async () => {
  const bytes = Buffer.from([0, 0xc3, 0x28, 0xff, 0xfe, 0, 0xed, 0xa0, 0x80]);
  await start((_request, response) => void response.end(bytes));
  expect((await post()).response?.body).toEqual(bytes);
});

/** Sends the last digit of the remaining count, one write at a time. */
function respondInPieces(count: number) {
  return (_request: IncomingMessage, response: ServerResponse) => {
    let remaining = count;
    const write = () => {
      if (remaining === 0) return response.end();
      remaining -= 1;
      response.write(String(remaining % 10));
      setImmediate(write);
    };
    write();
  };
}

test('a body that arrives in small pieces is assembled', async () => {
  await start(respondInPieces(50));
  const result = await post();
  expect(result.response?.body.toString()).toBe(Array.from({ length: 50 }, (_, n) => (49 - n) % 10).join(''));
});

test('a body in very many small pieces is read up to the limit of chunks', async () => {
  await start(respondInPieces(20_000));
  const { response, error } = await post();
  expect(error).toBeNull();
  expect(response).toMatchObject({ statusCode: 200, truncated: true });
});

test('proxies named in environment variables are not used', async () => {
  process.env.HTTP_PROXY = 'http://127.0.0.1:9';
  process.env.http_proxy = 'http://127.0.0.1:9';
  try {
    await start((_request, response) => void response.end());
    expect((await post()).error).toBeNull();
  } finally {
    delete process.env.HTTP_PROXY;
    delete process.env.http_proxy;
  }
});
