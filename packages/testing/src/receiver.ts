import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { IN_VAIN_MS } from './waiting.ts';

/** A request as it arrived, recorded when its last body byte is in. */
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

/** What to answer. Without anything: 200 and an empty body. */
export interface ReceiverAnswer {
  status?: number;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Waits before the headers are sent. */
  delayMs?: number;
  /** Sends the headers at once, then `bytes` of the body per `intervalMs`; without a body it drips without end. */
  drip?: { bytes: number; intervalMs: number };
  /** Takes the request and never answers. */
  never?: true;
}

/** `index` counts the recorded requests from 0. A promise holds the answer back until it settles. */
export type Responder = (request: ReceivedRequest, index: number) => ReceiverAnswer | Promise<ReceiverAnswer>;

/** Gets the request as its headers arrive and must answer itself; the body is recorded all the same. */
export type RawHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface ReceiverOptions {
  /** Default: any free one. Naming one lets a receiver come back where it was. */
  port?: number;
  /** An address of this machine; 127.0.0.1 when omitted. */
  host?: string;
  /** As `respondWith`. Default 200. */
  respond?: number | ReceiverAnswer | Responder;
}

export interface Receiver {
  /** `http://host:port` */
  url: string;
  port: number;
  /** In order of arrival; grows while the receiver lives. */
  requests: ReceivedRequest[];
  /** From now on: a status, an answer, or a function that gives one per request. */
  respondWith(respond: number | ReceiverAnswer | Responder): void;
  /** From now on a handler of node's own shape, for what an answer cannot say (broken framing, a reset). */
  handleWith(handler: RawHandler): void;
  /**
   * Waits for that many requests, or for one that the predicate is true of (called as by `Array.filter`). Gives all
   * requests, or those that match. After `timeoutMs` (60,000) it rejects and lists what did arrive.
   */
  waitFor(
    expected: number | ((request: ReceivedRequest, index: number, all: ReceivedRequest[]) => boolean),
    options?: { timeoutMs?: number },
  ): Promise<ReceivedRequest[]>;
  /** Resolves when no connection is open any more: everything that its senders have sent is recorded. */
  everyoneGone(): Promise<void>;
  /** Cuts every connection, answered or not. */
  close(): Promise<void>;
}

/** A real HTTP server that stands for a subscriber's endpoint. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);
  const closing = new AbortController();
  let responder = toResponder(options.respond ?? 200);
  let rawHandler: RawHandler | null = null;

  const server = createServer((request, response) => {
    // A sender that gives up in the middle is no fault of the receiver.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const handleRaw = rawHandler;
    record(request, (received) => {
      const index = requests.push(received) - 1;
      arrivals.emit('request');
      if (handleRaw === null) void answer(received, index, response);
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

  async function answer(received: ReceivedRequest, index: number, response: ServerResponse): Promise<void> {
    try {
      await respond(response, await responder(received, index), closing.signal);
    } catch (error) {
      // A fault of the test's own responder must show, and a 500 alone would look like an endpoint's.
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
    waitFor: (expected, { timeoutMs = IN_VAIN_MS } = {}) =>
      untilArrived(requests, arrivals, expected, timeoutMs),
    async everyoneGone() {
      // A turn of the event loop takes in whoever stood at the door.
      for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve));
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

function untilArrived(
  requests: ReceivedRequest[],
  arrivals: EventEmitter,
  expected: Parameters<Receiver['waitFor']>[0],
  timeoutMs: number,
): Promise<ReceivedRequest[]> {
  const matching = () => (typeof expected === 'number' ? requests : requests.filter(expected));
  const needed = typeof expected === 'number' ? expected : 1;
  const what = typeof expected === 'number' ? `${expected} request(s)` : 'a matching request';
  return new Promise((resolve, reject) => {
    const check = () => {
      try {
        const found = matching();
        if (found.length < needed) return;
        resolve([...found]);
      } catch (error) {
        reject(error);
      }
      settle();
    };
    const timer = setTimeout(() => {
      settle();
      reject(new Error(`waited ${timeoutMs} ms for ${what}; ${describe(requests)}`));
    }, timeoutMs);
    const settle = () => {
      clearTimeout(timer);
      arrivals.off('request', check);
    };
    arrivals.on('request', check);
    check();
  });
}

function toResponder(respond: number | ReceiverAnswer | Responder): Responder {
  if (typeof respond === 'function') return respond;
  return () => (typeof respond === 'number' ? { status: respond } : respond);
}

function record(request: IncomingMessage, onComplete: (received: ReceivedRequest) => void): void {
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

function describe(requests: readonly ReceivedRequest[]): string {
  if (requests.length === 0) return 'nothing arrived';
  const shown = requests.slice(-20).map(({ method, path, headers, body, receivedAt }) => {
    const id = headers['webhook-id'] === undefined ? '' : ` webhook-id=${headers['webhook-id']}`;
    return `  ${new Date(receivedAt).toISOString()} ${method} ${path} ${body.length} bytes${id} ${body.toString('utf8', 0, 120)}`;
  });
  return `${requests.length} arrived, the last ones:\n${shown.join('\n')}`;
}

/** Sends one answer; ends early, without an error, when the receiver closes or the sender has gone. */
async function respond(
  response: ServerResponse,
  answer: ReceiverAnswer,
  closing: AbortSignal,
): Promise<void> {
  const { status = 200, headers = {}, body = '', delayMs = 0, drip, never } = answer;
  if (never) return;
  if (delayMs > 0 && !(await pause(delayMs, closing))) return;
  response.writeHead(status, headers);
  if (drip === undefined) {
    response.end(body);
    return;
  }

  response.flushHeaders();
  const bytes = Buffer.from(body);
  for (let sent = 0; bytes.length === 0 || sent < bytes.length; sent += drip.bytes) {
    if (!(await pause(drip.intervalMs, closing)) || response.destroyed) return;
    response.write(
      bytes.length === 0 ? Buffer.alloc(drip.bytes, ' ') : bytes.subarray(sent, sent + drip.bytes),
    );
  }
  response.end();
}

/** False when the receiver was closed meanwhile. */
function pause(milliseconds: number, closing: AbortSignal): Promise<boolean> {
  return wait(milliseconds, undefined, { signal: closing }).then(
    () => true,
    () => false,
  );
}
