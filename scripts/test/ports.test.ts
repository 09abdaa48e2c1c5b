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

test('npm start replaces a taken port by the next free one in steps of ten', async () => {
  const taken = await take(0);
  const port = await createPortChooser()('management', taken);
  expect(port).not.toBe(taken);
  expect((port - taken) % 10 === 0 || port < taken).toBe(true);
});

test('npm start uses a free port, and the same one again for the same service', async () => {
  const choose = createPortChooser();
  const port = await choose('management', 0);
  expect(await choose('management', port)).toBe(port);
});

test('npm start never gives two services the same port, even before a process listens on it', async () => {
  const choose = createPortChooser();
  const management = await choose('management', 0);
  expect(await choose('dispatcher', management)).not.toBe(management);
});
