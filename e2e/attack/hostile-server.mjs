// Serves endpoints that violate the protocol, in a separate process, so that only the sender is measured. The path is the name of
// the endpoint. The port is sent to the parent.
import { createServer } from 'node:net';

const OK = 'HTTP/1.1 200 OK\r\n';
const COMPLETE_RESPONSE = `${OK}Content-Length: 2\r\n\r\nok`;

function writeForever(socket, piece) {
  const write = () => {
    while (!socket.destroyed && socket.write(piece));
    if (!socket.destroyed) socket.once('drain', write);
  };
  write();
}

/** Writes each byte separately, as fast as the other side reads them. */
function writeByteByByte(socket, text, then = () => {}) {
  const bytes = Buffer.from(text, 'latin1');
  let at = 0;
  const next = () => {
    if (socket.destroyed) return;
    if (at === bytes.length) return then();
    socket.write(bytes.subarray(at, at + 1), () => setImmediate(next));
    at += 1;
  };
  next();
}

const chunked = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

const endpoints = {
  plain: (socket) => socket.end(`${OK}Connection: close\r\nContent-Length: 2\r\n\r\nok`),
  'plain, keep-alive': (socket) => socket.write(COMPLETE_RESPONSE),
  'plain 204': (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
  'plain 500': (socket) => socket.write('HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno'),
  'body of 64 KiB': (socket) => socket.write(`${OK}Content-Length: 65536\r\n\r\n${'x'.repeat(65_536)}`),
  'body of 10 MB': (socket) => socket.write(`${OK}Content-Length: 10000000\r\n\r\n${'x'.repeat(10_000_000)}`),
  'body without end': (socket) => {
    socket.write(`${OK}\r\n`);
    writeForever(socket, Buffer.alloc(65_536, 'x'));
  },
  'content-length of terabytes': (socket) => {
    socket.write(`${OK}Content-Length: 9999999999999\r\n\r\n`);
    writeForever(socket, Buffer.alloc(65_536, 'x'));
  },
  'chunks of a byte': (socket) => socket.write(`${chunked}${'1\r\nx\r\n'.repeat(20_000)}0\r\n\r\n`),
  'chunks of a byte without end': (socket) => {
    socket.write(chunked);
    writeForever(socket, '1\r\nx\r\n'.repeat(5_000));
  },
  'chunks with long extensions': (socket) =>
    socket.write(`${chunked}${`1;${'e'.repeat(1_000)}\r\nx\r\n`.repeat(500)}0\r\n\r\n`),
  'broken chunk': (socket) => socket.write(`${chunked}zz\r\n`),
  'trailers without end': (socket) => {
    socket.write(`${chunked}1\r\nx\r\n0\r\n`);
    writeForever(socket, 'X-Trailer: value\r\n'.repeat(100));
  },
  'interim responses, 16': (socket) =>
    socket.write(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(16)}${COMPLETE_RESPONSE}`),
  'interim responses, a flood': (socket) =>
    writeForever(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(2_000)),
  'interim responses with long headers': (socket) =>
    writeForever(socket, `HTTP/1.1 103 Early Hints\r\n${`Link: </${'a'.repeat(70)}>\r\n`.repeat(150)}\r\n`),
  'body in single bytes': (socket) => {
    socket.write(`${OK}Content-Length: 5000\r\n\r\n`);
    writeByteByByte(socket, 'x'.repeat(5_000));
  },
  'headers in single bytes': (socket) =>
    writeByteByByte(socket, `${OK}X-Long: ${'h'.repeat(15_000)}\r\nContent-Length: 2\r\n\r\nok`),
  'interim responses in single bytes': (socket) =>
    writeByteByByte(
      socket,
      `HTTP/1.1 103 Hint\r\nX: ${'h'.repeat(1_000)}\r\n\r\n`.repeat(15) + COMPLETE_RESPONSE,
    ),
  'chunk extension in single bytes': (socket) => {
    socket.write(chunked);
    writeByteByByte(socket, `1;${'e'.repeat(10_000)}\r\nx\r\n0\r\n\r\n`);
  },
  'many short headers': (socket) =>
    socket.write(
      `${OK}${Array.from({ length: 1_900 }, (_, n) => `a${n % 10}: \r\n`).join('')}Content-Length: 2\r\n\r\nok`,
    ),
  'header of 15 kB': (socket) => socket.write(`${OK}X: ${'h'.repeat(15_000)}\r\nContent-Length: 2\r\n\r\nok`),
  'header of 100 kB': (socket) => socket.write(`${OK}X: ${'h'.repeat(100_000)}\r\n\r\n`),
  'headers without end': (socket) => {
    socket.write(OK);
    writeForever(socket, `X-A: ${'a'.repeat(1_000)}\r\n`);
  },
  cookies: (socket) => socket.write(`${OK}${'Set-Cookie: a=b\r\n'.repeat(800)}Content-Length: 2\r\n\r\nok`),
  'NUL in a header': (socket) => socket.write(`${OK}X-A: a\0b\r\n\r\n`),
  'two lengths': (socket) => socket.write(`${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`),
  'length and chunks': (socket) =>
    socket.write(`${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`),
  'not HTTP': (socket) => socket.write('SSH-2.0-OpenSSH_9.9\r\n'),
  'random bytes': (socket) => socket.write(Buffer.from([0, 1, 2, 255, 254])),
  '204 with a body': (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n<p>Thanks!</p>'),
  'responses without a request': (socket) => socket.write(COMPLETE_RESPONSE.repeat(2_000)),
  'invalid gzip': (socket) =>
    socket.write(
      `${OK}Content-Encoding: gzip\r\nContent-Length: 10000\r\n\r\n${'\x1f'.repeat(10_000)}`,
      'latin1',
    ),
  redirect: (socket) =>
    socket.write('HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n'),
  'switched protocols': (socket) =>
    socket.write('HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'),
  'closed at once': (socket) => socket.end(),
  reset: (socket) => socket.resetAndDestroy(),
  'closed within the body': (socket) => socket.end(`${OK}Content-Length: 9\r\n\r\nhalf`),
  silence: () => {},
  'silence after the headers': (socket) => socket.write(`${OK}Content-Length: 9\r\n\r\n`),
};

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => {});
  let head = '';
  socket.on('data', (data) => {
    head += data.toString('latin1');
    if (!head.includes('\r\n\r\n')) return;
    const name = decodeURIComponent(/^POST \/(\S*)/.exec(head)?.[1] ?? '');
    head = '';
    endpoints[name]?.(socket);
  });
});
server.listen(0, '127.0.0.1', () =>
  process.send({ port: server.address().port, names: Object.keys(endpoints) }),
);
process.on('disconnect', () => process.exit());
