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

test('a taken port is replaced by one that is ten or more higher', async () => {
  const taken = await take(0);
  const port = await createPortChooser()('management', taken);
  expect(port).not.toBe(taken);
  expect((port - taken) % 10 === 0 || port < taken).toBe(true);
});

test('a free port is used, and chosen again for the same name', async () => {
  const choose = createPortChooser();
  const port = await choose('management', 0);
  expect(await choose('management', port)).toBe(port);
});

test('two names never get the same port, even before a process listens on it', async () => {
  const choose = createPortChooser();
  const management = await choose('management', 0);
  expect(await choose('dispatcher', management)).not.toBe(management);
});
