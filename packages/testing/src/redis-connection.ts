import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** What a command answers, of the kinds used here. */
export type Reply = string | number | null | Reply[];

export interface RedisConnection {
  /** @throws the server's error text */
  send(...command: string[]): Promise<Reply>;
  close(): void;
}

/** The few commands that prepare a test's queue, one at a time. No dependency for that: a test brings its own client. */
export async function connectRedis(redisUrl: string): Promise<RedisConnection> {
  const url = new URL(redisUrl);
  const target = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 6379) };
  const isTls = url.protocol === 'rediss:';
  const socket = isTls ? connectTls({ ...target, servername: target.host }) : connectPlain(target);
  await once(socket, isTls ? 'secureConnect' : 'connect');

  let received = Buffer.alloc(0);
  let waiting: { resolve(reply: Reply): void; reject(error: Error): void } | null = null;
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    const parsed = parse(received, 0);
    if (parsed === null || waiting === null) return;
    received = received.subarray(parsed.end);
    const { resolve, reject } = waiting;
    waiting = null;
    if (parsed.reply instanceof Error) reject(parsed.reply);
    else resolve(parsed.reply);
  });
  const fail = (error?: Error) => {
    waiting?.reject(error ?? new Error('Redis closed the connection'));
    waiting = null;
  };
  socket.on('error', fail);
  socket.on('close', () => fail());

  const connection: RedisConnection = {
    send(...command) {
      return new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new Error('Redis closed the connection'));
        waiting = { resolve, reject };
        const parts = command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
        socket.write(`*${command.length}\r\n${parts.join('')}`);
      });
    },
    close: () => socket.destroy(),
  };
  if (url.password !== '') {
    const user = url.username === '' ? [] : [decodeURIComponent(url.username)];
    await connection.send('AUTH', ...user, decodeURIComponent(url.password));
  }
  return connection;
}

/** Null while the reply is not complete. */
function parse(bytes: Buffer, start: number): { reply: Reply | Error; end: number } | null {
  const lineEnd = bytes.indexOf('\r\n', start);
  if (lineEnd === -1) return null;
  const kind = String.fromCharCode(bytes[start] as number);
  const line = bytes.toString('utf8', start + 1, lineEnd);
  const next = lineEnd + 2;
  if (kind === '+') return { reply: line, end: next };
  if (kind === '-') return { reply: new Error(line), end: next };
  if (kind === ':') return { reply: Number(line), end: next };
  const length = Number(line);
  if (length === -1) return { reply: null, end: next };
  if (kind === '$') {
    if (bytes.length < next + length + 2) return null;
    return { reply: bytes.toString('utf8', next, next + length), end: next + length + 2 };
  }
  const replies: Reply[] = [];
  let end = next;
  for (let index = 0; index < length; index += 1) {
    const item = parse(bytes, end);
    if (item === null) return null;
    replies.push(item.reply instanceof Error ? item.reply.message : item.reply);
    end = item.end;
  }
  return { reply: replies, end };
}
