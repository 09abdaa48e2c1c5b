import type { Server } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress } from '../src/egress.ts';
import {
  type Listening,
  listen,
  NO_DEADLINE_MS,
  rawServer,
  waitForClientRead,
  writeForever,
} from './listening.ts';

const unhandledRejections: unknown[] = [];
const recordRejection = (reason: unknown) => void unhandledRejections.push(reason);
let server: Listening;
let egress: Egress;

async function postTo(behaviour: Server, body: Buffer = Buffer.from('{}')) {
  server = await listen(behaviour);
  egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS, responseBytesMax: 1_000 });
  return post(body);
}
const post = (body: Buffer = Buffer.from('{}')) =>
  egress.post({ accountId: 1, url: `http://127.0.0.1:${server.port}/`, headers: {}, body });

beforeAll(() => {
  process.on('unhandledRejection', recordRejection);
  process.on('uncaughtException', recordRejection);
});
afterAll(() => {
  process.off('unhandledRejection', recordRejection);
  process.off('uncaughtException', recordRejection);
});
afterEach(async () => {
  egress.close();
  await server.close();
  expect(unhandledRejections).toEqual([]);
});

const ok = 'HTTP/1.1 200 OK\r\n';
const invalid = { code: 'invalid_response', message: 'The response was not valid HTTP.' };
const tooLarge = { code: 'invalid_response', message: 'The headers of the response are too large.' };
const closed = {
  code: 'connection_reset',
  message: 'The connection was closed before the response was complete.',
};

describe('the result is a specific error and no connection remains when an endpoint', () => {
  const cases: [string, Server, { code: string; message: string }][] = [
    ['does not speak HTTP', rawServer((s) => void s.write('SSH-2.0-OpenSSH_9.9\r\n')), invalid],
    ['sends random bytes', rawServer((s) => void s.write(Buffer.from([0, 1, 2, 255, 254]))), invalid],
    ['has NUL in a header', rawServer((s) => void s.write(`${ok}X-A: a\u0000b\r\n\r\n`)), invalid],
    [
      'sends two content lengths',
      rawServer((s) => void s.write(`${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`)),
      invalid,
    ],
    [
      'sends a content length and chunks',
      rawServer((s) => void s.write(`${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`)),
      invalid,
    ],
    [
      'sends a huge header',
      rawServer((s) => void s.write(`${ok}X-A: ${'a'.repeat(100_000)}\r\n\r\n`)),
      tooLarge,
    ],
    [
      'sends endless headers',
      rawServer(
        (s, nth) => void (nth === 1 && s.write(ok, () => writeForever(s, `X-A: ${'a'.repeat(1_000)}\r\n`))),
      ),
      tooLarge,
    ],
    ['closes the connection immediately', rawServer((s) => void s.end()), closed],
    ['resets the connection', rawServer((s) => void s.resetAndDestroy()), closed],
    [
      'floods the client with interim responses',
      rawServer(
        (s, nth) => void (nth === 1 && writeForever(s, 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20))),
      ),
      { code: 'invalid_response', message: 'The endpoint sent too many interim responses.' },
    ],
    [
      'switches protocols',
      rawServer(
        (s) =>
          void s.write(
            'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
          ),
      ),
      { code: 'invalid_response', message: 'The endpoint responded with 101 and switched protocols.' },
    ],
  ];
  test.each(cases)('%s', async (_name, behaviour, error) => {
    const result = await postTo(behaviour);
    expect(result).toMatchObject({ response: null, error });
    await server.drained();
  });

  test.each(cutOff('HTTP/1.1 500 Oops'))(
    '%s in a 500 response (the received part is retained)',
    async (_name, behaviour) => {
      const result = await postTo(behaviour);
      expect(result.error).toEqual(closed);
      expect(result.response).toMatchObject({ statusCode: 500, body: Buffer.from('half'), truncated: true });
      await server.drained();
    },
  );
});

describe('a 2xx response with an incomplete body is a success when the endpoint', () => {
  const malformed = `${ok}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n`;
  const cases: [string, Server][] = [
    ...cutOff('HTTP/1.1 200 OK'),
    ['sends a malformed chunk size', rawServer((s) => void s.write(malformed))],
  ];
  test.each(cases)('%s', async (_name, behaviour) => {
    const result = await postTo(behaviour);
    expect(result.error).toBeNull();
    expect(result.response).toMatchObject({ statusCode: 200, body: Buffer.from('half'), truncated: true });
    expect(server.connections).toBe(1);
    await server.drained();
  });

  test('is still sending its body while the egress is closed', async () => {
    const beginning = `${ok}Content-Length: 9\r\n\r\nhalf`;
    const posted = postTo(
      rawServer((s) => {
        s.write(beginning);
        void waitForClientRead(s, beginning.length).then(() => egress.close());
      }),
    );
    const result = await posted;
    expect(result.error).toBeNull();
    expect(result.response).toMatchObject({ statusCode: 200, truncated: true });
    await server.drained();
  });
});

/** Endpoints whose response ends within its body, after "half". */
function cutOff(statusLine: string): [string, Server][] {
  const head = `${statusLine}\r\nContent-Length: 1000\r\n\r\nhalf`;
  return [
    ['closes the connection within its body', rawServer((s) => void s.end(head))],
    [
      'resets the connection within its body',
      rawServer((s) => {
        s.write(head);
        // A reset discards what the client has not read.
        void waitForClientRead(s, head.length).then(() => s.resetAndDestroy());
      }),
    ],
    [
      'closes the connection within a chunk',
      rawServer((s) => void s.end(`${statusLine}\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf`)),
    ],
  ];
}

describe('the response is complete when an endpoint', () => {
  const accepted: [string, string][] = [
    ['sends an invalid chunk size', `${ok}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
    ['sends a body with a status that forbids one', 'HTTP/1.1 204 No Content\r\n\r\n<p>Thanks!</p>'],
    ['sends more than its content length', `${ok}Content-Length: 2\r\n\r\nok, and more`],
  ];
  test.each(accepted)(
    '%s after a 2xx (the event is accepted, the connection is closed)',
    async (_name, rawResponse) => {
      const result = await postTo(rawServer((s) => void s.write(rawResponse)));
      expect(result.error).toBeNull();
      expect(result.response?.statusCode).toBe(Number(rawResponse.slice(9, 12)));
      await server.drained();
    },
  );

  test('sends an endless body, of which no more than the cap is retained', async () => {
    const piece = Buffer.alloc(65_536, 'x');
    let sentBytes = 0;
    const behaviour = rawServer((socket, nth) => {
      if (nth > 1) return;
      socket.write(`${ok}\r\n`);
      writeForever(socket, piece);
      socket.on('close', () => {
        sentBytes += socket.bytesWritten;
      });
    });
    const result = await postTo(behaviour);
    expect(result.error).toBeNull();
    expect(result.response).toMatchObject({ statusCode: 200, truncated: true });
    expect(result.response?.body.length).toBe(1_000);
    await server.drained();
    for (let n = 0; n < 50; n += 1) await post();
    await server.drained();
    expect(sentBytes / 51).toBeLessThan(20_000_000);
  });

  test('announces a body of terabytes', async () => {
    const result = await postTo(
      rawServer((s, nth) => {
        if (nth > 1) return;
        s.write(`${ok}Content-Length: 9999999999999\r\n\r\n`);
        writeForever(s, Buffer.alloc(65_536));
      }),
    );
    expect(result.error).toBeNull();
    expect(result.response?.truncated).toBe(true);
    await server.drained();
  });

  test('ends its body by closing the connection', async () => {
    const result = await postTo(rawServer((s) => void s.end(`${ok}\r\nwhole`)));
    expect(result).toMatchObject({ error: null, response: { body: Buffer.from('whole'), truncated: false } });
    await server.drained();
  });

  test('responds and closes the connection immediately', async () => {
    const result = await postTo(rawServer((s) => void s.end(`${ok}Content-Length: 2\r\n\r\nok`)));
    expect(result).toMatchObject({ error: null, response: { body: Buffer.from('ok') } });
    await server.drained();
  });

  test('sends a few interim responses first', async () => {
    const interimResponses = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
    const result = await postTo(
      rawServer((s) => void s.write(`${interimResponses}${ok}Content-Length: 2\r\n\r\nok`)),
    );
    expect(result).toMatchObject({ error: null, response: { statusCode: 200, body: Buffer.from('ok') } });
  });

  test('responds before it has read the request (the connection is not reused)', async () => {
    const behaviour = rawServer((socket, nth) => {
      if (nth > 1) return;
      socket.pause();
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno');
    });
    const result = await postTo(behaviour, Buffer.alloc(30_000_000));
    expect(result).toMatchObject({ error: null, response: { statusCode: 413, body: Buffer.from('no') } });
    for (const socket of server.open) socket.resume();
    await server.drained();
  });
});

test('bytes that an endpoint sends after its response are not mistaken for the response to the next request', async () => {
  const behaviour = rawServer((socket) => {
    socket.write(`${ok}Content-Length: 5\r\n\r\nfirst${ok}Content-Length: 6\r\n\r\nforged`);
  });
  await postTo(behaviour);
  const second = await post();
  expect(second.response?.body.toString() ?? 'first').toBe('first');
});

test('hundreds of invalid responses leave no connection behind', async () => {
  const responses = [
    'garbage\r\n\r\n',
    `${ok}Content-Length: 9\r\n\r\nhalf`,
    '',
    'HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
  ];
  let connectionCount = 0;
  const behaviour = rawServer((socket) => {
    connectionCount += 1;
    socket.end(responses[connectionCount % responses.length] ?? '');
  });
  await postTo(behaviour);
  for (let n = 0; n < 6; n += 1) {
    const results = await Promise.all(Array.from({ length: 50 }, () => post()));
    for (const { error, response } of results) expect(error !== null || response?.truncated).toBe(true);
  }
  await server.drained();
});
