import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { createSecureContext, rootCertificates, TLSSocket } from 'node:tls';
import type { AddressGuard } from './address-guard.ts';
import type { ClientCertificate } from './client-certificate.ts';
import { AddressForbiddenError, EgressClosedError, noteExpiry } from './failure.ts';

export interface ConnectionPoolOptions {
  guard: AddressGuard;
  /** Returns the lookup for connections of an account. It must return allowed addresses only. */
  lookupFor: (accountId: number) => LookupFunction;
  keepAlive: boolean;
  maxSocketsPerEndpoint: number;
  idleSocketsMax: number;
  idleSocketTimeoutMs: number;
  /** Time limit for a connection to one of several addresses before the next one is tried. */
  addressAttemptTimeoutMs: number;
  /** PEM, trusted in addition to Node's own certificates. */
  certificateAuthorities: readonly string[];
  /** Presented to endpoints that request one. */
  clientCertificate?: ClientCertificate | undefined;
}

/** Options of a request. Connections and TLS sessions are shared among requests of one account only. */
export interface AccountRequestOptions extends http.RequestOptions {
  accountId: number;
}

export interface ConnectionPool {
  agents: { http: http.Agent; https: https.Agent };
  /** Whether the request was sent on a reused connection that has not returned a byte since. */
  isReusedWithoutResponse(request: http.ClientRequest): boolean;
  /** Whether the request waits because its endpoint has the maximum number of connections. */
  waitsForConnection(request: http.ClientRequest): boolean;
  /** Destroys every connection; waiting and later requests fail. */
  close(): void;
}

/** Creates the agents through which all connections are made, so that no caller can bypass the guard. */
export function createConnectionPool(options: ConnectionPoolOptions): ConnectionPool {
  const idle = new IdleSockets(options.idleSocketsMax);
  const bytesReadAtReuse = new WeakMap<object, number>();
  let isClosed = false;

  function guardAgent<A extends http.Agent>(agent: A): A {
    const connect = agent.createConnection.bind(agent);
    const keepAlive = agent.keepSocketAlive.bind(agent);
    const reuse = agent.reuseSocket.bind(agent);
    const nameOf = agent.getName.bind(agent);

    // By the duration of its phases, an account could see whether another one has a connection to the same endpoint.
    agent.getName = (target) => `${accountOf(target)} ${nameOf(target)}`;
    agent.createConnection = (target, callback) => {
      const rejection = isClosed ? new EgressClosedError() : rejectLiteral(target, options.guard);
      if (rejection === null) {
        const withLookup = Object.assign(target, { lookup: options.lookupFor(accountOf(target)) });
        return watchCertificate(withBoundedChunks(connect(withLookup, callback) as Socket));
      }
      forgetEmptyEntry(agent, target);
      // Destroying a socket here would emit its error before the request listens; the callback is the documented way to
      // fail.
      callback?.(rejection, undefined as never);
      return undefined as never;
    };
    // The typings declare void, but Agent drops the socket if false is returned.
    agent.keepSocketAlive = (socket) => {
      const isReusable: unknown = keepAlive(socket);
      if (isReusable) idle.add(socket as Socket);
      return isReusable;
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
    isReusedWithoutResponse(request) {
      const bytesRead = bytesReadAtReuse.get(request);
      return bytesRead !== undefined && request.socket?.bytesRead === bytesRead;
    },
    waitsForConnection(request) {
      return isQueued(agents.http, request) || isQueued(agents.https, request);
    },
    close() {
      isClosed = true;
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

const CHUNK_BYTES_MAX = 2_048;

/**
 * Feeds the HTTP parser 2 KiB at a time. Node parses a complete read of up to 64 KiB even if the request has ended,
 * e.g. thousands of one-byte chunks or interim responses; with smaller pieces, destroying the socket drops the rest.
 */
function withBoundedChunks(socket: Socket): Socket {
  const push = socket.push.bind(socket);
  socket.push = (bytes: Buffer | null, encoding) => {
    if (bytes === null || bytes.length <= CHUNK_BYTES_MAX) return push(bytes, encoding);
    let wantsMore = true;
    for (let offset = 0; offset < bytes.length && !socket.destroyed; offset += CHUNK_BYTES_MAX)
      wantsMore = push(bytes.subarray(offset, offset + CHUNK_BYTES_MAX), encoding);
    return wantsMore;
  };
  return socket;
}

/**
 * Records the expiry date before the socket is destroyed, because the peer certificate of a destroyed connection cannot
 * be read.
 */
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
 * Bounds the number of idle keep-alive sockets of the process over all endpoints; the longest idle socket is closed
 * first. Agent's `maxTotalSockets` would count idle sockets against new connections, so that sockets of unused
 * endpoints could block those in use. A Set preserves insertion order; lru-cache reinitializes its arrays whenever its
 * last entry is removed, which at low load is once per request (5 us).
 */
class IdleSockets {
  readonly #sockets = new Set<Socket>();
  readonly #observed = new WeakSet<Socket>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket): void {
    if (this.#sockets.size >= this.#max) this.#closeOldest();
    this.#sockets.add(socket);
    if (this.#observed.has(socket)) return;
    this.#observed.add(socket);
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

/** Searches all queues of the agent, which are empty unless an endpoint has reached its connection limit. */
function isQueued(agent: http.Agent, request: http.ClientRequest): boolean {
  for (const name in agent.requests) if (agent.requests[name]?.includes(request as never)) return true;
  return false;
}

function agentOptions(options: ConnectionPoolOptions): http.AgentOptions {
  return {
    keepAlive: options.keepAlive,
    maxSockets: options.maxSocketsPerEndpoint,
    maxFreeSockets: options.maxSocketsPerEndpoint,
    timeout: options.idleSocketTimeoutMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: options.addressAttemptTimeoutMs,
  };
}

function httpsAgent(options: ConnectionPoolOptions): https.Agent {
  const { certificateAuthorities: extra, clientCertificate } = options;
  const hasOwnContext = extra.length > 0 || clientCertificate !== undefined;
  // Node would parse certificates for each connection and include them in the pool's keys; a shared context avoids both.
  const secureContext = hasOwnContext
    ? createSecureContext({
        ...clientCertificate,
        // Without `ca`, the context has Node's default certificates, with those of NODE_EXTRA_CA_CERTS.
        ...(extra.length > 0 && { ca: [...rootCertificates, ...extra] }),
      })
    : undefined;
  return new https.Agent({ ...agentOptions(options), ...(secureContext && { secureContext }) });
}

/** Node passes the options of a request to all methods of its agent. */
function accountOf(target: object | undefined): number {
  return (target as AccountRequestOptions).accountId;
}

/** Checks a literal address here, because a socket calls its lookup for names only. */
function rejectLiteral(target: http.ClientRequestArgs, guard: AddressGuard): Error | null {
  const host = target.host ?? '';
  if (target.socketPath) return new AddressForbiddenError(target.socketPath);
  return isIP(host) !== 0 && !guard.allows(host) ? new AddressForbiddenError(host) : null;
}

/**
 * Removes the endpoint's empty socket list. Agent creates it before it connects and deletes it only when a socket
 * closes.
 */
function forgetEmptyEntry(agent: http.Agent, target: http.ClientRequestArgs): void {
  const name = agent.getName(target);
  const sockets = agent.sockets as Record<string, Socket[] | undefined>;
  if (sockets[name]?.length === 0) delete sockets[name];
}
