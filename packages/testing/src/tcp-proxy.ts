import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Stands between the service and a server, which can so be gone and come back without being touched. */
export interface TcpProxy {
  /** The server's URL by way of the proxy. */
  url: string;
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>;
  /** Keeps every connection and takes new ones, but passes nothing on. */
  stall(): void;
  /**
   * Passes everything to the server, whose answer to what holds `text` is lost, and the connection with it: what was asked
   * for is done, and nobody hears of it.
   */
  loseAnswersTo(text: string): void;
  /** From now on new connections go to another server, which has taken the place of the first. */
  follow(serverUrl: string): void;
  /** Takes connections again and passes everything on. Those that were stalled stay so. */
  restore(): Promise<void>;
  /** Sockets that are open, two for each connection. */
  readonly socketCount: number;
  /** Those of them that were stalled: dead, and nobody has noticed. */
  readonly stalledCount: number;
  close(): Promise<void>;
}

/** @param host where it listens */
export async function startTcpProxy(serverUrl: string, host = '127.0.0.1'): Promise<TcpProxy> {
  let target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let server: Server | null = null;
  let port = 0;
  let isStalled = false;
  /** What was open while nothing was passed on: what it carried is lost, so it must not go on. */
  const stalled = new WeakSet<Socket>();
  let losesAnswersTo: string | null = null;

  function serve(client: Socket): void {
    const upstream = connect({ host: target.hostname, port: Number(target.port) });
    let answerIsLost = false;
    client.on('data', (chunk) => {
      answerIsLost ||= losesAnswersTo !== null && chunk.includes(losesAnswersTo);
    });
    upstream.on('data', () => answerIsLost && client.destroy());
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      if (isStalled) stalled.add(from);
      from.on('data', (chunk) => stalled.has(from) || to.destroyed || to.write(chunk));
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
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
      for (const socket of sockets) stalled.add(socket);
    },
    loseAnswersTo(text) {
      losesAnswersTo = text;
    },
    follow(other) {
      target = new URL(other);
    },
    async restore() {
      isStalled = false;
      losesAnswersTo = null;
      if (!server) await listen();
    },
    get socketCount() {
      return sockets.size;
    },
    get stalledCount() {
      return [...sockets].filter((socket) => stalled.has(socket)).length;
    },
    close: cut,
  };
}
