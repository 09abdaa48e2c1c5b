import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A reverse proxy that serves a server below a prefix, without passing the prefix on. */
export interface PrefixProxy {
  /** URL with the prefix, without a trailing slash. */
  url: string;
  origin: string;
  /** Requested paths outside the prefix. */
  requestsOutsidePrefix: string[];
  close(): Promise<void>;
}

export async function startPrefixProxy(target: string, prefix: string): Promise<PrefixProxy> {
  const requestsOutsidePrefix: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '';
    if (!path.startsWith(`${prefix}/`)) {
      requestsOutsidePrefix.push(path);
      outgoing.writeHead(404).end();
      return;
    }
    const upstream = request(
      new URL(path.slice(prefix.length), target),
      { method: incoming.method ?? 'GET', headers: incoming.headers },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      },
    );
    upstream.on('error', () => outgoing.destroy());
    incoming.pipe(upstream);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: origin + prefix,
    origin,
    requestsOutsidePrefix,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
