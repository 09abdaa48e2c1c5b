import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** For tests in which the deadline plays no part: longer than jest lets any test run. */
export const NO_DEADLINE_MS = 600_000;

export interface Listening {
  port: number;
  /** Every connection there ever was. */
  connections: number;
  open: ReadonlySet<Socket>;
  /** Resolves when there have been so many connections. */
  connected(count: number): Promise<void>;
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
    connected: (count) => turnsUntil(() => listening.connections >= count),
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

/** Every connection that this process has dialled: the egress lives in the same one as the servers it is tested with. */
const dialled = new Set<Socket>();
subscribe('net.client.socket', (message) => void dialled.add((message as { socket: Socket }).socket));

/** Resolves when the client has read so many bytes from this connection of a server, and passed them on. */
export async function clientHasRead(served: Socket, bytes: number): Promise<void> {
  const client = clientOf(served);
  await turnsUntil(() => client.bytesRead >= bytes);
  await turn();
}

/** Breaks this connection of a server; resolves when the client knows. */
export async function resetConnection(served: Socket): Promise<void> {
  const client = clientOf(served);
  served.resetAndDestroy();
  await turnsUntil(() => client.closed);
  await turn();
}

function clientOf(served: Socket): Socket {
  for (const client of dialled) if (client.localPort === served.remotePort) return client;
  throw new Error('this process has not dialled that connection');
}

/** One turn of the event loop: what has arrived is read, what was read is passed on. */
export function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** However long it takes. */
export async function turnsUntil(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await turn();
}
