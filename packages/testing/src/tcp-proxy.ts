import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A proxy between a service and a server, which makes the server unavailable without changing it. */
export interface TcpProxy {
  /** The server's URL with the address of the proxy. */
  url: string;
  /** Closes every connection and refuses new ones. */
  cut(): Promise<void>;
  /** Leaves connections open and accepts new ones, but forwards nothing. */
  stall(): void;
  /**
   * Forwards everything to the server, but closes the connection instead of forwarding the response to a request that
   * contains `text`: the server has executed the request, and the client gets no result.
   */
  dropResponsesTo(text: string): void;
  /** Connects new connections to another server, which has replaced the first one. */
  redirectTo(serverUrl: string): void;
  /** Accepts connections again and forwards everything. Stalled connections remain stalled. */
  restore(): Promise<void>;
  /** The number of open sockets, two per connection. */
  readonly socketCount: number;
  /** The number of stalled sockets that are still open. */
  readonly stalledCount: number;
  close(): Promise<void>;
}

/** @param host address on which the proxy listens */
export async function startTcpProxy(serverUrl: string, host = '127.0.0.1'): Promise<TcpProxy> {
  let target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let server: Server | null = null;
  let port = 0;
  let isStalled = false;
  /** Sockets that were open during a stall: the data was lost, so they must not be used further. */
  const stalledSockets = new WeakSet<Socket>();
  let droppedRequestText: string | null = null;

  function serve(client: Socket): void {
    const upstream = connect({ host: target.hostname, port: Number(target.port) });
    let isResponseDropped = false;
    client.on('data', (chunk) => {
      isResponseDropped ||= droppedRequestText !== null && chunk.includes(droppedRequestText);
    });
    upstream.on('data', () => isResponseDropped && client.destroy());
    for (const [source, destination] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(source);
      if (isStalled) stalledSockets.add(source);
      source.on(
        'data',
        (chunk) => stalledSockets.has(source) || destination.destroyed || destination.write(chunk),
      );
      source.on('error', () => undefined);
      source.on('close', () => {
        sockets.delete(source);
        // Data that the source sent before it closed is still forwarded.
        destination.destroySoon();
      });
    }
  }

  async function listen(): Promise<void> {
    server = createServer(serve).listen(port, host);
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  }

  async function cut(): Promise<void> {
    if (!server) return;
    const closed = once(server, 'close');
    server.close();
    server = null;
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  await listen();
  const url = new URL(serverUrl);
  url.host = `${host}:${port}`;
  return {
    url: url.href,
    cut,
    stall() {
      isStalled = true;
      for (const socket of sockets) stalledSockets.add(socket);
    },
    dropResponsesTo(text) {
      droppedRequestText = text;
    },
    redirectTo(nextServerUrl) {
      target = new URL(nextServerUrl);
    },
    async restore() {
      isStalled = false;
      droppedRequestText = null;
      if (!server) await listen();
    },
    get socketCount() {
      return sockets.size;
    },
    get stalledCount() {
      return [...sockets].filter((socket) => stalledSockets.has(socket)).length;
    },
    close: cut,
  };
}
