import type { Buffer } from 'node:buffer';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Got, type Request as GotRequest, TimeoutError } from 'got';
import type { ConnectionPool } from './connection-pool.ts';
import type { EndpointCache } from './endpoint-url.ts';
import { UnexpectedResponseError } from './failure.ts';
import { requestOf } from './got-client.ts';
import { BodyCollector, chunksSeenMax, filterChunks } from './response-body.ts';

export interface EgressResponse {
  statusCode: number;
  /** Names are in lower case; several values of one name are joined by ', '. */
  headers: Record<string, string>;
  /** The first bytes of the body as received: neither decompressed nor decoded. */
  body: Buffer;
  /** Whether `body` is incomplete: the response exceeded the limit or was cut off. */
  truncated: boolean;
}

/**
 * Duration of each phase in whole milliseconds. Null if the phase did not take place: it was not reached, a reused
 * connection did not need it, or the scheme does not have it.
 */
export interface EgressTimings {
  /** Name resolution; 0 for a literal address. */
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  /** The time from the end of the request to the head of the response. */
  firstByteMs: number | null;
  /** The time from the start of the request to its end, however it ended; includes the wait for a free connection. */
  totalMs: number;
}

/** The client and its connections, shared by all exchanges. */
export interface Sender {
  /** The client, with POST and stream as its defaults, because got merges the options of each request one by one. */
  client: Got;
  pool: ConnectionPool;
  endpoints: EndpointCache;
  /** The client's default deadline. */
  timeoutMs: number;
  inFlight: InFlight;
}

export interface ExchangeRequest {
  accountId: number;
  url: URL;
  headers: Record<string, string>;
  body: Buffer | string;
  responseBytesMax: number;
  /** Overrides the client's deadline if less time is left. */
  timeoutMs?: number;
}

/**
 * Result of one request on one connection. `completed`: the response is complete, or was read up to the cap, or is a 2xx
 * whose body was cut off before the deadline. Otherwise `response` is the part received so far, null before its head
 * was complete.
 */
export type ExchangeEnd = { timings: EgressTimings | null; costly: boolean } & (
  | { kind: 'completed'; response: EgressResponse }
  | { kind: 'timeout'; response: EgressResponse | null }
  | { kind: 'failed'; response: EgressResponse | null; error: unknown; request: ClientRequest | null }
);

/**
 * Allows the few interim (1xx) responses that endpoints send; without a limit an endpoint could flood the process with
 * them.
 */
const informationalResponsesMax = 16;

/** Limits the total of interim responses and the head of the final one. Node itself limits a single head. */
const headBytesMax = 65_536;
/**
 * Each read of a connection costs some 10 us, regardless of its size, so a response sent byte by byte would cost a
 * hundred times an ordinary one. 16 KiB in full packets take 12 reads.
 */
const readsMax = 64;
/** A response with this many reads or interim responses costs several times an ordinary one. */
const costlyReads = 48;
const costlyInformationalResponses = 8;
/** A response with more bytes outside of its body (heads, interim responses, chunk headers) is costly, too. */
const costlySurplusBytes = 32_768;

/**
 * Sends one POST and resolves exactly once with its result; never rejects. Afterwards the socket is either back in the
 * pool (complete response) or destroyed (all other cases).
 */
export function exchange(sender: Sender, options: ExchangeRequest): Promise<ExchangeEnd> {
  const { client, pool, endpoints, inFlight } = sender;
  const { accountId, url, headers, body, responseBytesMax, timeoutMs } = options;
  return new Promise((resolve) => {
    const collector = new BodyCollector(responseBytesMax);
    let incoming: IncomingMessage | null = null;
    let request: ClientRequest | null = null;
    let connectionDeadline: NodeJS.Timeout | undefined;
    let informationalResponses = 0;
    let reads = 0;
    let bytesRead = 0;
    let settled = false;

    const timeoutOptions = timeoutMs === undefined ? {} : { timeout: { request: timeoutMs } };
    const stream = client.stream(url, {
      headers,
      body,
      request: requestOf(accountId, { agents: pool.agents, endpoints }),
      ...timeoutOptions,
    });
    const entry = inFlight.add((reason) => settle(classifyEnd(reason, incoming), reason));

    function countRead(bytes: Buffer): void {
      reads += 1;
      bytesRead += bytes.length;
      if (settled) return;
      if (incoming === null) {
        if (surplusBytes() > headBytesMax)
          settle('failed', new UnexpectedResponseError('The endpoint sent too much before its response.'));
        else if (reads > readsMax)
          settle('failed', new UnexpectedResponseError('The endpoint sent its response in tiny chunks.'));
      } else if (reads > readsMax) {
        collector.stop();
        settle('completed');
      }
    }

    function surplusBytes(): number {
      return bytesRead - collector.bytesSeen;
    }

    function settle(kind: ExchangeEnd['kind'], error?: unknown): void {
      if (settled) return;
      settled = true;
      clearTimeout(connectionDeadline);
      inFlight.remove(entry);
      request?.socket?.off('data', countRead);
      const costly =
        reads >= costlyReads ||
        informationalResponses >= costlyInformationalResponses ||
        collector.chunksSeen > chunksSeenMax ||
        surplusBytes() > costlySurplusBytes;
      const response = incoming === null ? null : readResponse(incoming, collector);
      const timings = readTimings(stream.timings, request?.reusedSocket === true);
      if (kind === 'completed' && response !== null) resolve({ kind, response, timings, costly });
      else if (kind === 'timeout') resolve({ kind, response, timings, costly });
      else resolve({ kind: 'failed', response, error, request, timings, costly });
      // An endpoint may respond before it has read the request; such a socket could stay busy indefinitely.
      const isComplete = kind === 'completed' && error === undefined && !collector.truncated;
      const reusable = isComplete && request?.writableFinished === true;
      if (reusable) return;
      // Destroyed immediately, because got destroys it later: no further read of the socket is parsed.
      request?.socket?.destroy();
      stream.destroy();
    }

    // The listeners remain after the end: a destroyed request still emits an error, which would otherwise be unhandled.
    stream.on('error', (error) => settle(classifyEnd(error, incoming), error));
    stream.on('request', (created) => {
      request = created;
      created.on('error', ignore);
      created.once('socket', (socket: Socket) => {
        if (!settled) socket.on('data', countRead);
      });
      // Watches the parser instead of got's stream, which would buffer ten thousand chunks of a 64 KiB read. Node
      // cannot be stopped within a read, but the rest of it is ignored.
      created.once('response', (received: IncomingMessage) => {
        incoming = received;
        filterChunks(received, {
          accepts(chunk) {
            if (settled) return false;
            if (chunk !== null) collector.add(chunk);
            if (collector.truncated) settle('completed');
            return true;
          },
        });
      });
      if (!pool.waitsForConnection(created)) return;
      // got's deadline destroys such a request, but Node reports that only when a connection becomes free for it.
      connectionDeadline = setTimeout(() => settle('timeout'), timeoutMs ?? sender.timeoutMs);
    });
    stream.resume();
    stream.on('end', () => settle('completed'));
    stream.on('information', () => {
      // Node parses the rest of a flood even after the end, thousands of responses from one read.
      if (settled) return;
      informationalResponses += 1;
      if (informationalResponses <= informationalResponsesMax) return;
      settle('failed', new UnexpectedResponseError('The endpoint sent too many interim responses.'));
    });
    // got listens for this event, so Node removes the socket from the pool and it must be destroyed here.
    stream.on('upgrade', (_response: IncomingMessage, socket: ClientRequest['socket']) => {
      socket?.on('error', ignore).destroy();
      settle(
        'failed',
        new UnexpectedResponseError('The endpoint responded with 101 and switched protocols.'),
      );
    });
  });
}

interface OpenExchange {
  abort: (reason: Error) => void;
  /** Index in the array. */
  index: number;
}

/**
 * The exchanges in flight. Uses an array because V8's scavenges retained every request that had been in a Set until the
 * next full collection.
 */
export class InFlight {
  readonly #entries: OpenExchange[] = [];

  add(abort: OpenExchange['abort']): OpenExchange {
    const entry = { abort, index: this.#entries.length };
    this.#entries.push(entry);
    return entry;
  }

  remove(entry: OpenExchange): void {
    const last = this.#entries.pop();
    if (last === undefined || last === entry) return;
    last.index = entry.index;
    this.#entries[entry.index] = last;
  }

  abortAll(reason: Error): void {
    for (const { abort } of [...this.#entries]) abort(reason);
  }
}

/**
 * A complete 2xx head means that the endpoint has accepted the event. If the body is cut off afterwards by any error
 * (an early close, a reset, a malformed chunk), the attempt still succeeded, since another attempt could only repeat
 * the event. Only the deadline makes it fail.
 */
function classifyEnd(error: unknown, incoming: IncomingMessage | null): ExchangeEnd['kind'] {
  if (error instanceof TimeoutError) return 'timeout';
  const isAccepted =
    incoming?.statusCode !== undefined && incoming.statusCode >= 200 && incoming.statusCode < 300;
  return isAccepted ? 'completed' : 'failed';
}

function readResponse(incoming: IncomingMessage, collector: BodyCollector): EgressResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return {
    statusCode: incoming.statusCode ?? 0,
    headers,
    body: collector.bytes(),
    truncated: collector.truncated || !incoming.complete,
  };
}

/** For a reused connection `got` reports the phases of its creation, which are not part of this request. */
function readTimings(timings: GotRequest['timings'], isReused: boolean): EgressTimings | null {
  if (timings === undefined) return null;
  const { phases, start, socket, lookup } = timings;
  return {
    // got's own `dns` phase is 0 whenever the connection took less than a millisecond, however slow the name was.
    dnsMs: isReused || lookup === undefined || socket === undefined ? null : roundMs(lookup - socket),
    connectMs: isReused ? null : roundMs(phases.tcp),
    tlsMs: isReused ? null : roundMs(phases.tls),
    firstByteMs: roundMs(phases.firstByte),
    totalMs: roundMs(phases.total) ?? Math.max(0, Date.now() - start),
  };
}

/**
 * Rounds and clamps: the system clock may be set back, and `got` reports NaN if the response precedes the end of the
 * request.
 */
function roundMs(ms: number | undefined): number | null {
  return ms === undefined || Number.isNaN(ms) ? null : Math.max(0, Math.round(ms));
}

function ignore(): void {}
