import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { findProgram } from '@runhook/embedded/server-process';
import { createTestDatabase } from './template-database.ts';

export interface QueueBackend {
  name: 'PostgreSQL' | 'Redis';
}

/** A key that marks a logical database which tests may empty. */
const TEST_MARKER_KEY = 'runhook:test';
const NEXT_DATABASE_KEY = 'runhook:test:next';

/** Returns the available queue back ends, for `describe.each`; Redis only if TEST_REDIS_URL is set. */
export function queueBackends(): QueueBackend[] {
  const backends: QueueBackend[] = [{ name: 'PostgreSQL' }];
  if (process.env.TEST_REDIS_URL !== undefined) backends.push({ name: 'Redis' });
  return backends;
}

let isOtherQueue = false;

/**
 * Returns the backend that `npm test` uses for tests whose subject does not depend on the queue, for `describe.each`: Redis, or
 * PostgreSQL without one. After `useOtherQueue` it returns the others.
 */
export function oneQueueBackend(): QueueBackend[] {
  const backends = queueBackends();
  return isOtherQueue ? backends.slice(0, -1) : backends.slice(-1);
}

/** Makes {@link oneQueueBackend} return the other backends, for a `.long.test.ts` file that imports tests to repeat them. */
export function useOtherQueue(): void {
  isOtherQueue = true;
}

const CHROMIUM_NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The reason that a skipped test reports if no browser was found. */
export const NO_CHROMIUM = `no ${CHROMIUM_NAMES.slice(0, -1).join(', ')} or ${CHROMIUM_NAMES.at(-1)} is on the path and CHROMIUM_PATH is not set`;

/** Returns CHROMIUM_PATH if it is set, otherwise the path of an installed Chromium that has a window, or null. */
export function findChromium(): string | null {
  return process.env.CHROMIUM_PATH || findProgram(CHROMIUM_NAMES);
}

/**
 * Returns the browser for tests that compare no pictures: the same as {@link findChromium}, but Chromium's headless
 * shell if it is installed. It opens no window and takes half of the CPU, but renders text differently.
 */
export function findHeadlessChromium(): string | null {
  return process.env.CHROMIUM_PATH || findProgram(['chromium-headless-shell', ...CHROMIUM_NAMES]);
}

/**
 * Returns a QUEUE_URL for one test. On PostgreSQL it is the URL of the test database; on Redis an empty logical
 * database that no other test uses, until all numbers have been used (511 on the server that `npm test` starts; a
 * server with 16 reuses a number after 15). A database with keys of other programs is skipped, never emptied.
 */
export async function createTestQueueUrl(backend: QueueBackend, databaseUrl: string): Promise<string> {
  if (backend.name === 'PostgreSQL') return databaseUrl;
  const redisUrl = process.env.TEST_REDIS_URL;
  if (redisUrl === undefined) throw new Error('TEST_REDIS_URL is not set');
  return withRedis(redisUrl, async (redis) => {
    const count = await readDatabaseCount(redis);
    for (let attempt = 0; attempt < count; attempt += 1) {
      await redis.send('SELECT', '0');
      const number = 1 + (Number(await redis.send('INCR', NEXT_DATABASE_KEY)) % (count - 1));
      if (await flushIfTestDatabase(redis, number)) {
        await redis.send('SET', TEST_MARKER_KEY, '1');
        const url = new URL(redisUrl);
        url.pathname = `/${number}`;
        return url.href;
      }
    }
    throw new Error(`every logical database of the Redis for tests holds keys that are not a test's`);
  });
}

/** Creates an empty queue for one test. On PostgreSQL it is in a new database, which `drop` removes. */
export async function createTestQueue(
  backend: QueueBackend,
): Promise<{ url: string; drop(): Promise<void> }> {
  if (backend.name === 'PostgreSQL') return await createTestDatabase();
  return { url: await createTestQueueUrl(backend, ''), drop: async () => undefined };
}

/** Empties the databases that tests used, on a server that outlives the run. */
export async function removeTestQueues(redisUrl: string): Promise<void> {
  await withRedis(redisUrl, async (redis) => {
    const count = await readDatabaseCount(redis);
    for (let number = 1; number < count; number += 1) {
      await redis.send('SELECT', String(number));
      if ((await redis.send('EXISTS', TEST_MARKER_KEY)) === 1) await redis.send('FLUSHDB');
    }
    await redis.send('SELECT', '0');
    await redis.send('DEL', NEXT_DATABASE_KEY);
  });
}

/** Returns false if the database has keys of other programs. */
async function flushIfTestDatabase(redis: RedisConnection, number: number): Promise<boolean> {
  await redis.send('SELECT', String(number));
  if ((await redis.send('DBSIZE')) === 0) return true;
  if ((await redis.send('EXISTS', TEST_MARKER_KEY)) === 0) return false;
  await redis.send('FLUSHDB');
  return true;
}

async function readDatabaseCount(redis: RedisConnection): Promise<number> {
  // A managed server may reject the command; every server has at least 16.
  const reply = await redis.send('CONFIG', 'GET', 'databases').catch(() => null);
  return Number(Array.isArray(reply) ? reply[1] : 16) || 16;
}

async function withRedis<T>(url: string, use: (redis: RedisConnection) => Promise<T>): Promise<T> {
  const redis = await connectRedis(url);
  try {
    return await use(redis);
  } finally {
    redis.close();
  }
}

/** The replies of the commands used here. */
export type Reply = string | number | null | Reply[];

export interface RedisConnection {
  /** @throws the server's error text */
  send(...command: string[]): Promise<Reply>;
  close(): void;
}

/**
 * Connects for the few commands that prepare a test's queue, one at a time. Uses no client library, because tests bring
 * their own.
 */
export async function connectRedis(redisUrl: string): Promise<RedisConnection> {
  const url = new URL(redisUrl);
  const target = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 6379) };
  const isTls = url.protocol === 'rediss:';
  const socket = isTls ? connectTls({ ...target, servername: target.host }) : connectPlain(target);
  await once(socket, isTls ? 'secureConnect' : 'connect');

  let received = Buffer.alloc(0);
  let pendingReplies: { resolve(reply: Reply): void; reject(error: Error): void } | null = null;
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    const parsed = parseReply(received, 0);
    if (parsed === null || pendingReplies === null) return;
    received = received.subarray(parsed.end);
    const { resolve, reject } = pendingReplies;
    pendingReplies = null;
    if (parsed.reply instanceof Error) reject(parsed.reply);
    else resolve(parsed.reply);
  });
  const fail = (error?: Error) => {
    pendingReplies?.reject(error ?? new Error('Redis closed the connection'));
    pendingReplies = null;
  };
  socket.on('error', fail);
  socket.on('close', () => fail());

  const connection: RedisConnection = {
    send(...command) {
      return new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new Error('Redis closed the connection'));
        pendingReplies = { resolve, reject };
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

/** Returns null while the reply is incomplete. */
function parseReply(bytes: Buffer, start: number): { reply: Reply | Error; end: number } | null {
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
    const item = parseReply(bytes, end);
    if (item === null) return null;
    replies.push(item.reply instanceof Error ? item.reply.message : item.reply);
    end = item.end;
  }
  return { reply: replies, end };
}
