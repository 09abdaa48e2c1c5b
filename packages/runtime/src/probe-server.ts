import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpProbes } from './http-probes.ts';

/** A client that reads or writes slowly may not hold up the stop of the process. */
const closeGraceMs = 2_000;

export interface ProbeServerOptions {
  /** 0 takes a free one. */
  port: number;
  /** Default: every interface, for whoever probes comes from outside. */
  host?: string;
  probes: HttpProbes;
}

export interface ProbeServer {
  port: number;
  /** Closes idle connections at once and lets answers under way end, for up to two seconds. */
  close(): Promise<void>;
}

/** Serves the probes of a process that has no other HTTP port. Rejects when the port cannot be had. */
export async function startProbeServer({ port, host, probes }: ProbeServerOptions): Promise<ProbeServer> {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, async (request, response) => {
    if (await probes(request, response)) return;
    response.writeHead(404, { 'content-type': 'text/plain' }).end('Not found.\n');
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      const cut = setTimeout(() => server.closeAllConnections(), closeGraceMs);
      await closed;
      clearTimeout(cut);
    },
  };
}
