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
import type { Log } from './request-telemetry.ts';

/** Maximum times of clients in milliseconds. */
export interface Patience {
  /** For the headers of a request. */
  headMs: number;
  /** For a complete request. Must exceed the deadline of `readBody`, whose response is more specific. */
  wholeMs: number;
  /** For the rest of a body after the response was sent without it. */
  lingerMs: number;
}

const PATIENCE: Patience = { headMs: 10_000, wholeMs: 30_000, lingerMs: 2_000 };
/** Interval between two checks for clients that exceed these times. */
const CHECKED_EVERY_MS = 1_000;
/** Must exceed the idle timeout of proxies, which would otherwise use a connection that is being closed. */
const KEEP_ALIVE_MS = 65_000;
/** Timeout of a silent connection; must exceed the longest request, a test of an endpoint. */
const SILENCE_MS = 180_000;
const IDLE_SWEEP_MS = 50;

export interface HttpServer {
  port: number;
  /** Stops accepting connections, waits for the requests in flight, and closes each connection once it is idle. */
  close(): Promise<void>;
}

/** Serves on `host` and `port`; 0 selects a free port. Rejects if the port is not available. */
export async function listen(
  listener: RequestListener,
  options: { host: string; port: number; log: Log; patience?: Partial<Patience> | undefined },
): Promise<HttpServer> {
  const patience = { ...PATIENCE, ...options.patience };
  const server = createServer({
    headersTimeout: patience.headMs,
    requestTimeout: patience.wholeMs,
    connectionsCheckingInterval: Math.min(CHECKED_EVERY_MS, patience.headMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node's own rejection has no body.
    requireHostHeader: false,
  });
  server.setTimeout(SILENCE_MS);
  serve(server, listener, { log: options.log, lingerMs: patience.lingerMs });
  const unused = unusedConnections(server);
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
        for (const socket of unused) if (socket.bytesRead === 0) socket.destroy();
      }, IDLE_SWEEP_MS);
      await closed;
      clearInterval(sweep);
    },
  };
}

/** Tracks connections opened in advance, which Node does not count as idle until their first request. */
function unusedConnections(server: Server): ReadonlySet<Socket> {
  const unused = new Set<Socket>();
  server.on('connection', (socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  return unused;
}

/** Passes requests that Node would answer without the envelope to the listener, or answers them here. */
function serve(server: Server, listener: RequestListener, how: { log: Log; lingerMs: number }): void {
  const { log, lingerMs } = how;
  const underWay = new WeakMap<Duplex, ServerResponse>();
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    underWay.set(socket, response);
    // An idle connection must not retain its last response, which would move to the old generation of the heap.
    response.once('close', () => {
      if (underWay.get(socket) === response) underWay.delete(socket);
    });
    cutUnreadBody(request, response, lingerMs);
    listener(request, response as Parameters<RequestListener>[1]);
  };
  server.on('request', answer).on('checkContinue', answer).on('checkExpectation', answer);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // A second response must not be mixed into one that is being sent.
    if (socket.writable && !underWay.get(socket)?.headersSent) answerMalformed(socket, errorFor(error), log);
    else socket.destroy();
  });
  server.on('connect', (_request, socket) =>
    answerMalformed(socket, new MethodNotAllowedError('CONNECT', []), log),
  );
}

/**
 * Allows a client that writes before it reads a short time to send the rest of its body, which is ignored, and then
 * closes the connection. Otherwise a rejected client would occupy it for the deadline of a body.
 */
function cutUnreadBody(request: IncomingMessage, response: ServerResponse, lingerMs: number): void {
  const { socket } = request;
  response.once('finish', () => {
    if (request.complete) return;
    const cut = setTimeout(() => request.complete || socket.destroy(), lingerMs);
    cut.unref();
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
function answerMalformed(socket: Duplex, error: ApiError, log: Log): void {
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
  log.info({ status, code, requestId }, 'request could not be read');
  socket.on('error', () => undefined);
  socket.end(`HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  );
}

/** Rejects well-formed requests that are ambiguous or unsupported. */
export const requirePlainRequest: RequestHandler = (request, _response, next) => {
  const { rawHeaders, httpVersion, headers } = request;
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host').length;
  // If there were several, a proxy could read another host than this service and bypass decisions based on it.
  if (hosts > 1 || (hosts === 0 && httpVersion !== '1.0'))
    throw new InvalidRequestError([{ field: 'Host', message: 'Host must be given once' }]);
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    throw new ExpectationFailedError();
  next();
};
