import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { createSecureContext, rootCertificates, TLSSocket } from 'node:tls';
import type { AddressGuard } from './address-guard.ts';
import { AddressForbiddenError, EgressClosedError, noteExpiry } from './failure.ts';

export interface ConnectionPoolOptions {
  guard: AddressGuard;
  /** Already guarded: gives allowed addresses only. */
  lookup: LookupFunction;
  keepAlive: boolean;
  maxSocketsPerEndpoint: number;
  idleSocketsMax: number;
  idleSocketTimeoutMs: number;
  /** How long one of several addresses may take to connect before the next is tried. */
  addressAttemptTimeoutMs: number;
  /** PEM, trusted beside the certificates Node brings. */
  certificateAuthorities: readonly string[];
}

export interface ConnectionPool {
  agents: { http: http.Agent; https: https.Agent };
  /** Whether this request went out on a socket kept from an earlier one and not a byte has come back since. */
  reusedInSilence(request: http.ClientRequest): boolean;
  /** Whether every connection that its endpoint may have is taken. */
  waitsForConnection(request: http.ClientRequest): boolean;
  /** Destroys every connection; requests that come later, or wait for a connection, get none. */
  close(): void;
}

/** The agents that every connection passes through; the guard cannot be gone round from above. */
export function createConnectionPool(options: ConnectionPoolOptions): ConnectionPool {
  const idle = new IdleSockets(options.idleSocketsMax);
  const bytesReadAtReuse = new WeakMap<object, number>();
  let closed = false;

  function guardAgent<A extends http.Agent>(agent: A): A {
    const connect = agent.createConnection.bind(agent);
    const keep = agent.keepSocketAlive.bind(agent);
    const reuse = agent.reuseSocket.bind(agent);

    agent.createConnection = (target, callback) => {
      const refusal = closed ? new EgressClosedError() : literalRefusal(target, options.guard);
      if (refusal === null) return watchCertificate(inPieces(connect(target, callback) as Socket));
      forgetEmptyEntry(agent, target);
      // A destroyed socket would emit its error before the request listens; the callback is the documented way out.
      callback?.(refusal, undefined as never);
      return undefined as never;
    };
    // Agent's typings say void, but false is what makes it drop the socket.
    agent.keepSocketAlive = (socket) => {
      const kept: unknown = keep(socket);
      if (kept) idle.add(socket as Socket);
      return kept;
    };
    agent.reuseSocket = (socket, request) => {
      idle.delete(socket as Socket);
      bytesReadAtReuse.set(request, (socket as Socket).bytesRead);
      reuse(socket, request);
    };
    return agent;
  }

  const agents = {
    http: guardAgent(new http.Agent(agentOptions(options))),
    https: guardAgent(httpsAgent(options)),
  };

  return {
    agents,
    reusedInSilence(request) {
      const bytesRead = bytesReadAtReuse.get(request);
      return bytesRead !== undefined && request.socket?.bytesRead === bytesRead;
    },
    waitsForConnection(request) {
      return isQueued(agents.http, request) || isQueued(agents.https, request);
    },
    close() {
      closed = true;
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

const PIECE_BYTES = 2_048;

/**
 * Node takes what it has read apart to its end, 64 KiB of chunks of a byte or of answers to nothing, whatever becomes of
 * the request meanwhile. Given to it in pieces, the rest is dropped with the socket.
 */
function inPieces(socket: Socket): Socket {
  const push = socket.push.bind(socket);
  socket.push = (bytes: Buffer | null, encoding) => {
    if (bytes === null || bytes.length <= PIECE_BYTES) return push(bytes, encoding);
    let goesOn = true;
    for (let at = 0; at < bytes.length && !socket.destroyed; at += PIECE_BYTES)
      goesOn = push(bytes.subarray(at, at + PIECE_BYTES), encoding);
    return goesOn;
  };
  return socket;
}

/** Nothing can be asked of a certificate once its connection is destroyed, which is what a refused one leads to. */
function watchCertificate(socket: Socket): Socket {
  if (!(socket instanceof TLSSocket)) return socket;
  const destroy = socket.destroy.bind(socket);
  socket.destroy = (error) => {
    if (error) noteExpiry(error, () => socket.getPeerX509Certificate()?.validTo);
    return destroy(error);
  };
  return socket;
}

/**
 * Bounds how many idle keep-alive sockets a process holds over all endpoints. Agent's own total would count idle
 * sockets against new connections, so that endpoints nobody calls any more could stop the ones in use; here the socket
 * that was idle longest makes room. A Set keeps that order by itself; lru-cache clears all it has allocated whenever the
 * last one leaves, which in a calm hour is every request (5 us).
 */
class IdleSockets {
  readonly #sockets = new Set<Socket>();
  readonly #watched = new WeakSet<Socket>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket): void {
    if (this.#sockets.size >= this.#max) this.#closeOldest();
    this.#sockets.add(socket);
    if (this.#watched.has(socket)) return;
    this.#watched.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  delete(socket: Socket): void {
    this.#sockets.delete(socket);
  }

  #closeOldest(): void {
    const [oldest] = this.#sockets;
    if (oldest === undefined) return;
    this.#sockets.delete(oldest);
    oldest.destroy();
  }
}

/** Agent has no queues but in a rush, so this costs next to nothing. */
function isQueued(agent: http.Agent, request: http.ClientRequest): boolean {
  for (const name in agent.requests) if (agent.requests[name]?.includes(request as never)) return true;
  return false;
}

function agentOptions(options: ConnectionPoolOptions): http.AgentOptions {
  return {
    keepAlive: options.keepAlive,
    lookup: options.lookup,
    maxSockets: options.maxSocketsPerEndpoint,
    maxFreeSockets: options.maxSocketsPerEndpoint,
    timeout: options.idleSocketTimeoutMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: options.addressAttemptTimeoutMs,
  };
}

function httpsAgent(options: ConnectionPoolOptions): https.Agent {
  const extra = options.certificateAuthorities;
  // One context made once: given as `ca` it would be parsed for each connection and become part of the pool's keys.
  const secureContext =
    extra.length > 0 ? createSecureContext({ ca: [...rootCertificates, ...extra] }) : undefined;
  return new https.Agent({ ...agentOptions(options), ...(secureContext && { secureContext }) });
}

/** A socket calls its lookup for names only; a host that is an address it dials as it is. */
function literalRefusal(target: http.ClientRequestArgs, guard: AddressGuard): Error | null {
  const host = target.host ?? '';
  if (target.socketPath) return new AddressForbiddenError(target.socketPath);
  return isIP(host) !== 0 && !guard.allows(host) ? new AddressForbiddenError(host) : null;
}

/** Agent makes a list for an endpoint before it connects and drops it when a socket closes; here none ever will. */
function forgetEmptyEntry(agent: http.Agent, target: http.ClientRequestArgs): void {
  const name = agent.getName(target);
  const sockets = agent.sockets as Record<string, Socket[] | undefined>;
  if (sockets[name]?.length === 0) delete sockets[name];
}
