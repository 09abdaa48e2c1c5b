import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

export interface Listening {
  port: number;
  /** Every connection there ever was. */
  connections: number;
  open: ReadonlySet<Socket>;
  /** Resolves when no connection is open. */
  drained(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server on a free loopback port and counts its connections. */
export async function listen(server: Server, host = '127.0.0.1', port = 0): Promise<Listening> {
  const open = new Set<Socket>();
  const waiting = new Set<() => void>();
  server.on('connection', (socket: Socket) => {
    listening.connections += 1;
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      if (open.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting.clear();
    });
  });
  server.listen(port, host);
  await once(server, 'listening');
  const listening: Listening = {
    port: (server.address() as AddressInfo).port,
    connections: 0,
    open,
    drained: () => (open.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.add(resolve))),
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return listening;
}

/** A server below HTTP: `onRequest` gets the socket each time a piece of a request arrives. */
export function rawServer(onRequest: (socket: Socket, nth: number) => void): Server {
  return createServer((socket) => {
    let received = 0;
    socket.on('error', () => {});
    socket.on('data', () => {
      received += 1;
      onRequest(socket, received);
    });
  });
}

/** Writes for as long as the other side reads, never holding more than a piece in memory. */
export function writeForever(socket: Socket, piece: Buffer | string): void {
  const write = () => {
    while (!socket.destroyed && socket.write(piece));
    if (!socket.destroyed) socket.once('drain', write);
  };
  write();
}
