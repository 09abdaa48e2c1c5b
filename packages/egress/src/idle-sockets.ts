import type { Socket } from 'node:net';

/**
 * Bounds how many idle keep-alive sockets a process holds over all endpoints. Agent's own total would count idle
 * sockets against new connections, so that endpoints nobody calls any more could stop the ones in use; here the socket
 * that was idle longest makes room.
 */
export class IdleSockets {
  readonly #sockets = new Set<Socket>();
  readonly #known = new WeakSet<Socket>();
  readonly #sizeMax: number;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  add(socket: Socket): void {
    if (this.#sockets.size >= this.#sizeMax) this.#dropOldest();
    this.#sockets.add(socket);
    if (this.#known.has(socket)) return;
    this.#known.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  delete(socket: Socket): void {
    this.#sockets.delete(socket);
  }

  #dropOldest(): void {
    for (const oldest of this.#sockets) {
      this.#sockets.delete(oldest);
      oldest.destroy();
      return;
    }
  }
}
