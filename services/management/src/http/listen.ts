import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

const IDLE_SWEEP_MS = 50;

export interface HttpServer {
  port: number;
  /** Takes no more connections, lets the requests in flight end, and closes each connection once it is idle. */
  close(): Promise<void>;
}

/** Serves on `host` and `port`; 0 takes a free one. Rejects when the port cannot be had. */
export async function listen(
  listener: RequestListener,
  options: { host: string; port: number },
): Promise<HttpServer> {
  const server = createServer(
    { headersTimeout: 15_000, requestTimeout: 60_000, keepAliveTimeout: 65_000 },
    listener,
  );
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      // A kept connection that was busy when the stop came would otherwise stay open once its answer is out.
      const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
      await closed;
      clearInterval(sweep);
    },
  };
}
