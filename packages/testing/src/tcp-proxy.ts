import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A server behind a wire that can be cut: what a service sees when its database or queue goes away and comes back. */
export interface TcpProxy {
  /** The given URL, with the proxy's host and port in it. */
  url: string;
  /** Cuts every connection and refuses new ones. */
  cut(): Promise<void>;
  /** Takes connections again, on the same port. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

/** @param targetUrl where the real server is; its port must be in it */
export async function startTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let server: Server | null = null;

  async function listen(port: number): Promise<number> {
    server = createServer((inbound) => {
      const outbound = connect(Number(target.port), target.hostname);
      for (const [from, to] of [
        [inbound, outbound],
        [outbound, inbound],
      ] as const) {
        sockets.add(from);
        from
          .on('error', () => undefined)
          .on('close', () => {
            sockets.delete(from);
            to.destroy();
          });
        from.pipe(to);
      }
    }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  async function cut(): Promise<void> {
    const closing = server;
    server = null;
    const closed = closing ? new Promise((resolve) => closing.close(resolve)) : undefined;
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  const port = await listen(0);
  const url = new URL(targetUrl);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return { url: url.toString(), cut, restore: async () => void (await listen(port)), close: cut };
}
