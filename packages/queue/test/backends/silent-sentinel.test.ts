import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { eventually } from '@runhook/testing';
import { createQueueBackend } from '../../src/index.ts';
import { startServer, WITHIN_TEST_TIMEOUT } from './redis-servers.ts';

const testWithRedis = findRedisServer() === null ? test.skip : test;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts a server that accepts connections and never replies, like a host that hangs. */
async function startSilentServer(): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
  }).listen(0, '127.0.0.1');
  closers.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

testWithRedis('a client asks the next sentinel when one accepts connections and does not reply', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-redis-'));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  const master = await startServer({ folder, name: 'master', conf: (port) => [`port ${port}`, 'save ""'] });
  closers.push(() => master.kill());
  const sentinel = await startServer({
    folder,
    name: 'sentinel',
    conf: (port) => [`port ${port}`, `sentinel monitor main 127.0.0.1 ${master.port} 1`],
    isSentinel: true,
  });
  closers.push(() => sentinel.kill());
  const silent = await startSilentServer();
  const url = `redis+sentinel://127.0.0.1:${silent},127.0.0.1:${sentinel.port}/main`;
  const queue = createQueueBackend(url, { callMs: 1_000 }).createQueue('passed-over');
  queue.on('error', () => undefined);
  closers.push(() => queue.close());
  await eventually(() => queue.add('job', {}), WITHIN_TEST_TIMEOUT);
  expect(await queue.getWaitingCount()).toBeGreaterThan(0);
});
