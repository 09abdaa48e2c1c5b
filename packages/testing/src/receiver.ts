import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { WAIT_TIMEOUT_MS } from './eventually.ts';

/** A request, recorded once its complete body has arrived. */
export interface ReceivedRequest {
  method: string;
  /** Path and query, as sent. */
  path: string;
  headers: IncomingHttpHeaders;
  /** The exact bytes. */
  body: Buffer;
  /** Milliseconds since the epoch. */
  receivedAt: number;
}

/** The response to a request. Default: 200 and an empty body. */
export interface ReceiverResponse {
  status?: number;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Delay before the headers are sent. */
  delayMs?: number;
  /** Sends the headers immediately, then `bytes` of the body every `intervalMs`; without a body it sends endlessly. */
  drip?: { bytes: number; intervalMs: number };
  /** Accepts the request and never responds. */
  neverResponds?: true;
}

/** `index` counts the recorded requests from 0. A promise delays the response until it settles. */
export type Responder = (
  request: ReceivedRequest,
  index: number,
) => ReceiverResponse | Promise<ReceiverResponse>;

/** Gets the request when its headers have arrived and must respond; the body is recorded as well. */
export type RawHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface ReceiverOptions {
  /** Default: any free port. A fixed port allows a receiver to restart at the same address. */
  port?: number;
  /** An address of this machine; default 127.0.0.1. */
  host?: string;
  /** See `respondWith`. Default 200. */
  respond?: number | ReceiverResponse | Responder;
}

export interface Receiver {
  /** `http://host:port` */
  url: string;
  port: number;
  /** All requests in the order of arrival; grows while the receiver runs. */
  requests: ReceivedRequest[];
  /** Sets the response to later requests: a status, a response, or a function that returns one per request. */
  respondWith(respond: number | ReceiverResponse | Responder): void;
  /**
   * Handles later requests with a handler of node:http, for responses that cannot be described (broken framing, a
   * reset).
   */
  handleWith(handler: RawHandler): void;
  /**
   * Waits for a number of requests, or for one that satisfies the predicate (called as by `Array.filter`). Resolves
   * with all requests, or with those that match. After `timeoutMs` (60,000) it rejects and lists the requests that
   * arrived.
   */
  waitFor(
    expected: number | ((request: ReceivedRequest, index: number, all: ReceivedRequest[]) => boolean),
    options?: { timeoutMs?: number },
  ): Promise<ReceivedRequest[]>;
  /** Resolves once no connection is open, so that every request that was sent is recorded. */
  waitUntilDisconnected(): Promise<void>;
  /** Closes every connection, including those without a response. */
  close(): Promise<void>;
}

/** Starts an HTTP server that acts as a subscriber's endpoint. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);
  const closing = new AbortController();
  let responder = toResponder(options.respond ?? 200);
  let rawHandler: RawHandler | null = null;

  const server = createServer((request, response) => {
    // A sender that aborts its request must not fail the receiver.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const handleRaw = rawHandler;
    collectRequest(request, (received) => {
      const index = requests.push(received) - 1;
      arrivals.emit('request');
      if (handleRaw === null) void handleRequest(received, index, response);
    });
    handleRaw?.(request, response);
  });

  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      arrivals.emit('gone');
    });
  });

  async function handleRequest(
    received: ReceivedRequest,
    index: number,
    response: ServerResponse,
  ): Promise<void> {
    try {
      await respond(response, await responder(received, index), closing.signal);
    } catch (error) {
      // Makes an error of the test's responder visible, because an empty 500 would look like an endpoint's response.
      response.writeHead(500).end(`the test's responder threw: ${(error as Error).stack}`);
    }
  }

  const { host = '127.0.0.1' } = options;
  server.listen(options.port ?? 0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://${host}:${port}`,
    port,
    requests,
    respondWith(next) {
      responder = toResponder(next);
      rawHandler = null;
    },
    handleWith(handler) {
      rawHandler = handler;
    },
    waitFor: (expected, { timeoutMs = WAIT_TIMEOUT_MS } = {}) =>
      waitForRequests(requests, arrivals, expected, timeoutMs),
    async waitUntilDisconnected() {
      // Two event loop iterations accept the connections that are already waiting.
      for (let iterations = 0; iterations < 2; iterations++)
        await new Promise((resolve) => setImmediate(resolve));
      while (sockets.size > 0) await once(arrivals, 'gone');
    },
    async close() {
      closing.abort();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function waitForRequests(
  requests: ReceivedRequest[],
  arrivals: EventEmitter,
  expected: Parameters<Receiver['waitFor']>[0],
  timeoutMs: number,
): Promise<ReceivedRequest[]> {
  const matching = () => (typeof expected === 'number' ? requests : requests.filter(expected));
  const needed = typeof expected === 'number' ? expected : 1;
  const description = typeof expected === 'number' ? `${expected} request(s)` : 'a matching request';
  return new Promise((resolve, reject) => {
    const check = () => {
      try {
        const found = matching();
        if (found.length < needed) return;
        resolve([...found]);
      } catch (error) {
        reject(error);
      }
      cleanUp();
    };
    const timer = setTimeout(() => {
      cleanUp();
      reject(new Error(`waited ${timeoutMs} ms for ${description}; ${describeRequests(requests)}`));
    }, timeoutMs);
    const cleanUp = () => {
      clearTimeout(timer);
      arrivals.off('request', check);
    };
    arrivals.on('request', check);
    check();
  });
}

function toResponder(respond: number | ReceiverResponse | Responder): Responder {
  if (typeof respond === 'function') return respond;
  return () => (typeof respond === 'number' ? { status: respond } : respond);
}

function collectRequest(request: IncomingMessage, onComplete: (received: ReceivedRequest) => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () =>
    onComplete({
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks),
      receivedAt: Date.now(),
    }),
  );
}

function describeRequests(requests: readonly ReceivedRequest[]): string {
  if (requests.length === 0) return 'nothing arrived';
  const shown = requests.slice(-20).map(({ method, path, headers, body, receivedAt }) => {
    const id = headers['webhook-id'] === undefined ? '' : ` webhook-id=${headers['webhook-id']}`;
    return `  ${new Date(receivedAt).toISOString()} ${method} ${path} ${body.length} bytes${id} ${body.toString('utf8', 0, 120)}`;
  });
  return `${requests.length} arrived, the last ones:\n${shown.join('\n')}`;
}

/** Sends a response; ends early, without an error, if the receiver is closed or the sender has disconnected. */
async function respond(
  response: ServerResponse,
  content: ReceiverResponse,
  closing: AbortSignal,
): Promise<void> {
  const { status = 200, headers = {}, body = '', delayMs = 0, drip, neverResponds } = content;
  if (neverResponds) return;
  if (delayMs > 0 && !(await waitUnlessClosed(delayMs, closing))) return;
  response.writeHead(status, headers);
  if (drip === undefined) {
    response.end(body);
    return;
  }

  response.flushHeaders();
  const bytes = Buffer.from(body);
  for (let sent = 0; bytes.length === 0 || sent < bytes.length; sent += drip.bytes) {
    if (!(await waitUnlessClosed(drip.intervalMs, closing)) || response.destroyed) return;
    response.write(
      bytes.length === 0 ? Buffer.alloc(drip.bytes, ' ') : bytes.subarray(sent, sent + drip.bytes),
    );
  }
  response.end();
}

/** Resolves with false if the receiver was closed during the pause. */
function waitUnlessClosed(delayMs: number, closing: AbortSignal): Promise<boolean> {
  return wait(delayMs, undefined, { signal: closing }).then(
    () => true,
    () => false,
  );
}
