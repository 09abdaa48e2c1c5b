import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** A deadline longer than Jest's test timeout, for tests that the deadline must not affect. */
export const NO_DEADLINE_MS = 600_000;

export interface Listening {
  port: number;
  /** Total number of connections so far. */
  connections: number;
  open: ReadonlySet<Socket>;
  /** Resolves once the total number of connections is reached. */
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
    connected: (count) => iterateUntil(() => listening.connections >= count),
    drained: () => (open.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.add(resolve))),
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return listening;
}

/** A server below HTTP: `onRequest` gets the socket for each request that arrives. */
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

/** Writes for as long as the peer reads, with at most one piece in memory. */
export function writeForever(socket: Socket, piece: Buffer | string): void {
  const write = () => {
    while (!socket.destroyed && socket.write(piece));
    if (!socket.destroyed) socket.once('drain', write);
  };
  write();
}

/** All client connections of this process; the egress runs in the same process as the servers of its tests. */
const connectEvents = new Set<Socket>();
subscribe('net.client.socket', (message) => void connectEvents.add((message as { socket: Socket }).socket));

/** Resolves once the client has read this many bytes of the server-side connection and passed them on. */
export async function waitForClientRead(served: Socket, bytes: number): Promise<void> {
  const client = clientOf(served);
  await iterateUntil(() => client.bytesRead >= bytes);
  await nextIteration();
}

/** Resets a server-side connection; resolves once the client has noticed. */
export async function resetConnection(served: Socket): Promise<void> {
  const client = clientOf(served);
  served.resetAndDestroy();
  await iterateUntil(() => client.closed);
  await nextIteration();
}

function clientOf(served: Socket): Socket {
  for (const client of connectEvents) if (client.localPort === served.remotePort) return client;
  throw new Error('this process has not opened that connection');
}

/** Waits for one iteration of the event loop, in which received data is read and passed on. */
export function nextIteration(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Polls without a time limit. */
export async function iterateUntil(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await nextIteration();
}
