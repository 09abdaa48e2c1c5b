import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RequestHandler } from 'express';
import { failureBody } from './envelope.ts';
import {
  type ApiError,
  ExpectationFailedError,
  HeadersTooLargeError,
  InvalidRequestError,
  MethodNotAllowedError,
  RequestTimeoutError,
} from './errors.ts';
import { fileTransferMs } from './file-upload.ts';
import type { Log } from './request-telemetry.ts';

/** Maximum times that a client may take, in milliseconds. */
export interface ClientTimeouts {
  /** For the headers of a request. */
  headersMs: number;
  /** For a complete request. Must exceed the deadlines of `readBody` and of an upload, whose responses are more specific. */
  requestMs: number;
  /** For the rest of a body after the response was sent without it; for that of a file, for a part of it. */
  lingerMs: number;
}

const CLIENT_TIMEOUTS: ClientTimeouts = { headersMs: 10_000, requestMs: 1_200_000, lingerMs: 2_000 };
/** Longest time for the rest of a file, and the number of connections that may take more than `lingerMs`. */
const FILE_LINGER = { maxMs: 30_000, connectionsMax: 64 };
/** Interval between two checks for clients that exceed these times. */
const CHECK_INTERVAL_MS = 1_000;
/**
 * Idle timeout of a connection. Must exceed that of proxies, which would otherwise use a connection that is being
 * closed.
 */
const KEEP_ALIVE_MS = 65_000;
/** Timeout of a silent connection; must exceed the longest request, a test of an endpoint. */
const SOCKET_TIMEOUT_MS = 180_000;
const IDLE_SWEEP_MS = 50;

export interface HttpServer {
  port: number;
  /** Stops accepting connections, waits for the requests in flight, and closes each connection once it is idle. */
  close(): Promise<void>;
}

/** Serves on `host` and `port`; 0 selects a free port. Rejects if the port is not available. */
export async function listen(
  listener: RequestListener,
  options: { host: string; port: number; log: Log; clientTimeouts?: Partial<ClientTimeouts> | undefined },
): Promise<HttpServer> {
  const clientTimeouts = { ...CLIENT_TIMEOUTS, ...options.clientTimeouts };
  const server = createServer({
    headersTimeout: clientTimeouts.headersMs,
    requestTimeout: clientTimeouts.requestMs,
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL_MS, clientTimeouts.headersMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node's response to a request without `Host` has no body; that of requireUnambiguousRequest has the envelope.
    requireHostHeader: false,
  });
  server.setTimeout(SOCKET_TIMEOUT_MS);
  serve(server, listener, { log: options.log, lingerMs: clientTimeouts.lingerMs });
  const unusedSockets = unusedConnections(server);
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      // A keep-alive connection that was busy when the stop began would otherwise stay open after its response.
      const sweep = setInterval(() => {
        server.closeIdleConnections();
        for (const socket of unusedSockets) if (socket.bytesRead === 0) socket.destroy();
      }, IDLE_SWEEP_MS);
      await closed;
      clearInterval(sweep);
    },
  };
}

/** Tracks connections opened in advance, which Node does not count as idle until their first request. */
function unusedConnections(server: Server): ReadonlySet<Socket> {
  const unusedSockets = new Set<Socket>();
  server.on('connection', (socket) => {
    unusedSockets.add(socket);
    socket.once('close', () => unusedSockets.delete(socket));
  });
  server.on('request', ({ socket }) => unusedSockets.delete(socket));
  return unusedSockets;
}

/** Passes requests that Node would answer without the envelope to the listener, or answers them here. */
function serve(
  server: Server,
  listener: RequestListener,
  serveOptions: { log: Log; lingerMs: number },
): void {
  const { log, lingerMs } = serveOptions;
  const lingering = new Set<Socket>();
  const pendingResponses = new WeakMap<Duplex, ServerResponse>();
  const handleRequest = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    pendingResponses.set(socket, response);
    // An idle connection must not retain its last response, which would move to the old generation of the heap.
    response.once('close', () => {
      if (pendingResponses.get(socket) === response) pendingResponses.delete(socket);
    });
    closeUnreadBody(request, response, { lingerMs, lingering, isStopping: () => !server.listening });
    listener(request, response as Parameters<RequestListener>[1]);
  };
  server
    .on('request', handleRequest)
    .on('checkContinue', handleRequest)
    .on('checkExpectation', handleRequest);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // A second response must not be mixed into one that is being sent.
    if (socket.writable && !pendingResponses.get(socket)?.headersSent)
      respondToMalformed(socket, errorFor(error), log);
    else socket.destroy();
  });
  server.on('connect', (_request, socket) =>
    respondToMalformed(socket, new MethodNotAllowedError('CONNECT', []), log),
  );
}

/**
 * Allows a client that writes before it reads a short time to send the rest of its body, which is ignored, and then
 * closes the connection. Otherwise a rejected client would occupy it for the deadline of a body. Few clients may take
 * longer to send the rest of a file, as long as it arrives.
 */
function closeUnreadBody(
  request: IncomingMessage,
  response: ServerResponse,
  linger: { lingerMs: number; lingering: Set<Socket>; isStopping: () => boolean },
): void {
  const { lingerMs, lingering, isStopping } = linger;
  const { socket } = request;
  response.once('finish', () => {
    if (request.complete) return;
    // A handler that stopped reading has paused the request, and a client that writes first would wait in vain. A stream
    // does not flow while an iterator, which may be waiting for data, listens for it.
    request.removeAllListeners('readable');
    request.resume();
    const mayStay = lingering.size < FILE_LINGER.connectionsMax;
    const fileMs = mayStay ? Math.min(fileTransferMs(request), FILE_LINGER.maxMs) : 0;
    if (fileMs > 0) lingering.add(socket);
    const endMs = performance.now() + fileMs;
    let { bytesRead } = socket;
    const timer = setInterval(() => {
      const isSending = socket.bytesRead > bytesRead && performance.now() < endMs && !isStopping();
      ({ bytesRead } = socket);
      if (isSending && !request.complete) return;
      if (!request.complete) socket.destroy();
      stop();
    }, lingerMs);
    timer.unref();
    const stop = () => {
      clearInterval(timer);
      lingering.delete(socket);
    };
    request.once('close', stop);
  });
}

function errorFor({ code }: NodeJS.ErrnoException): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') return new HeadersTooLargeError();
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new RequestTimeoutError();
  return new InvalidRequestError([{ field: 'request', message: 'request must be HTTP/1.1' }]);
}

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/** Answers on the socket, since a request that could not be parsed has no response object. */
function respondToMalformed(socket: Duplex, error: ApiError, log: Log): void {
  const { statusCode: status, headers, code } = error;
  const requestId = randomUUID();
  const body = JSON.stringify(failureBody(error));
  const head = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-request-id': requestId,
    ...headers,
    connection: 'close',
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  log.info({ status, code, requestId }, 'malformed request rejected');
  socket.on('error', () => undefined);
  socket.end(`HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  );
}

/** Rejects well-formed requests that are ambiguous or unsupported. */
export const requireUnambiguousRequest: RequestHandler = (request, _response, next) => {
  const { rawHeaders, httpVersion, headers } = request;
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host').length;
  // With several hosts, a proxy could read another one than this service, and decisions based on it could be bypassed.
  if (hosts > 1 || (hosts === 0 && httpVersion !== '1.0'))
    throw new InvalidRequestError([{ field: 'Host', message: 'Host must be given once' }]);
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    throw new ExpectationFailedError();
  next();
};
