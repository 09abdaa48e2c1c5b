import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A reverse proxy that serves a server below a prefix, without passing the prefix on. */
export interface PrefixProxy {
  /** URL with the prefix, without a trailing slash. */
  url: string;
  origin: string;
  /** Requested paths outside the prefix. */
  strays: string[];
  close(): Promise<void>;
}

export async function startPrefixProxy(target: string, prefix: string): Promise<PrefixProxy> {
  const strays: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '';
    if (!path.startsWith(`${prefix}/`)) {
      strays.push(path);
      outgoing.writeHead(404).end();
      return;
    }
    const forwarded = request(
      new URL(path.slice(prefix.length), target),
      { method: incoming.method ?? 'GET', headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: origin + prefix,
    origin,
    strays,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
