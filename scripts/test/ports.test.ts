import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { createPortChooser } from '../src/service.ts';

const open: Server[] = [];

afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

async function take(port: number): Promise<number> {
  const server = createServer().listen(port, '127.0.0.1');
  open.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('a taken port is stepped over by ten or more', async () => {
  const taken = await take(0);
  const port = await createPortChooser()('management', taken);
  expect(port).not.toBe(taken);
  expect((port - taken) % 10 === 0 || port < taken).toBe(true);
});

test('a free port is taken as it is, and again by who had it', async () => {
  const choose = createPortChooser();
  const port = await choose('management', 0);
  expect(await choose('management', port)).toBe(port);
});

test('two names never get one port, though nobody listens on it yet', async () => {
  const choose = createPortChooser();
  const management = await choose('management', 0);
  expect(await choose('dispatcher', management)).not.toBe(management);
});
