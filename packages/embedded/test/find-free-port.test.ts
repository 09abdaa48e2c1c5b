import { createServer, type Server } from 'node:net';
import { expect, test } from '@jest/globals';
import { findFreePort } from '../src/index.ts';

test('findFreePort() returns the preferred port if it is free', async () => {
  const { port } = await findFreePort();
  expect(await findFreePort(port)).toEqual({ port, wasTaken: false });
});

test.each(['127.0.0.1', '0.0.0.0'])(
  'findFreePort() skips a port that is in use on %s and reports that',
  async (host) => {
    const holder = await listenOn(host);
    const { port: taken } = holder.address() as { port: number };
    const found = await findFreePort(taken);
    expect(found.wasTaken).toBe(true);
    expect(found.port).not.toBe(taken);
    holder.close();
  },
);

function listenOn(host: string): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, host, () => resolve(server));
  });
}
