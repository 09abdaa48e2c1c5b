import type { Buffer } from 'node:buffer';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Got, type Request as GotRequest, TimeoutError } from 'got';
import { BodyCollector, chunksSeenMax, watch } from './answer-body.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { UnexpectedAnswerError } from './failure.ts';

export interface EgressResponse {
  statusCode: number;
  /** Lower-case names; several values of one name are joined by ', '. */
  headers: Record<string, string>;
  /** The first bytes of the body as they came: not decompressed, not decoded. */
  body: Buffer;
  /** Whether `body` is incomplete: the response was longer than is retained, or was cut off before its end. */
  truncated: boolean;
}

/**
 * How long each phase took, in whole milliseconds. Null is a phase that did not take place: it was not reached, a kept
 * connection had it behind it, or the scheme has none.
 */
export interface EgressTimings {
  /** Name resolution; 0 for an address. */
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  /** From the whole request sent to the head of the answer. */
  firstByteMs: number | null;
  /** From the request to the end, whichever it was; the wait for a free connection is in it. */
  totalMs: number;
}

/** What exchanges go out through, and how those still open are ended from outside. */
export interface Sender {
  /** Its defaults say POST and stream: options that are given with a request are merged one by one. */
  client: Got;
  pool: ConnectionPool;
  /** The client's own deadline. */
  timeoutMs: number;
  inFlight: InFlight;
}

export interface ExchangeRequest {
  url: URL;
  headers: Record<string, string>;
  body: Buffer | string;
  responseBytesMax: number;
  /** When less than the client's own is left. */
  timeoutMs?: number;
}

/**
 * How one request on one connection ended. `answered`: the response is complete, or was read up to the cap, or is a 2xx whose
 * body was cut off before the deadline. Otherwise `response` is what was received until then, null before its head was complete.
 */
export type ExchangeEnd = { timings: EgressTimings | null; costly: boolean } & (
  | { kind: 'answered'; response: EgressResponse }
  | { kind: 'timeout'; response: EgressResponse | null }
  | { kind: 'failed'; response: EgressResponse | null; error: unknown; request: ClientRequest | null }
);

/** An endpoint may send a few 1xx answers before the real one; without a limit it could send them as fast as it likes. */
const informationalAnswersMax = 16;

/** Interim answers and the head of the real one, together. Node itself bounds a single head. */
const headBytesMax = 65_536;
/**
 * Each read of a connection costs some 10 us, whether it brings a byte or all that there is, so an answer that comes byte
 * by byte, its head too, would cost a hundred times a plain one. 16 KiB in full packets are 12 reads.
 */
const readsMax = 64;
/** From so many reads or interim answers on, an answer costs several times a plain one. */
const costlyReads = 48;
const costlyInformationalAnswers = 8;
/** As many bytes that are neither head nor body: thousands of answers behind the one, or tiny chunks. */
const costlySurplusBytes = 32_768;

/**
 * Sends one POST and resolves with how it ended, exactly once and never with a rejection. From then on nothing of it is
 * left: the socket is back in the pool after a whole answer and destroyed after anything else.
 */
export function exchange(sender: Sender, options: ExchangeRequest): Promise<ExchangeEnd> {
  const { client, pool, inFlight } = sender;
  const { url, headers, body, responseBytesMax, timeoutMs } = options;
  return new Promise((resolve) => {
    const collector = new BodyCollector(responseBytesMax);
    let answer: IncomingMessage | null = null;
    let request: ClientRequest | null = null;
    let connectionDeadline: NodeJS.Timeout | undefined;
    let informationalAnswers = 0;
    let reads = 0;
    let bytesRead = 0;
    let settled = false;

    const ofThisRequest = timeoutMs === undefined ? {} : { timeout: { request: timeoutMs } };
    const stream = client.stream(url, { headers, body, ...ofThisRequest });
    const open = inFlight.add((reason) => settle(endOf(reason, answer), reason));

    function countRead(bytes: Buffer): void {
      reads += 1;
      bytesRead += bytes.length;
      if (settled) return;
      if (answer === null) {
        if (surplusBytes() > headBytesMax)
          settle('failed', new UnexpectedAnswerError('The endpoint sent too much before its answer.'));
        else if (reads > readsMax)
          settle('failed', new UnexpectedAnswerError('The endpoint sent its answer in crumbs.'));
      } else if (reads > readsMax) {
        collector.stop();
        settle('answered');
      }
    }

    function surplusBytes(): number {
      return bytesRead - collector.bytesSeen;
    }

    function settle(kind: ExchangeEnd['kind'], error?: unknown): void {
      if (settled) return;
      settled = true;
      clearTimeout(connectionDeadline);
      inFlight.remove(open);
      request?.socket?.off('data', countRead);
      const costly =
        reads >= costlyReads ||
        informationalAnswers >= costlyInformationalAnswers ||
        collector.chunksSeen > chunksSeenMax ||
        surplusBytes() > costlySurplusBytes;
      const response = answer === null ? null : readResponse(answer, collector);
      const timings = readTimings(stream.timings, request?.reusedSocket === true);
      if (kind === 'answered' && response !== null) resolve({ kind, response, timings, costly });
      else if (kind === 'timeout') resolve({ kind, response, timings, costly });
      else resolve({ kind: 'failed', response, error, request, timings, costly });
      // An endpoint may answer before it has read the request; such a socket would stay busy for as long as it likes.
      const isWhole = kind === 'answered' && error === undefined && !collector.truncated;
      const reusable = isWhole && request?.writableFinished === true;
      if (reusable) return;
      // At once, while got waits for its turn: no further read of the socket is taken apart.
      request?.socket?.destroy();
      stream.destroy();
    }

    // These listeners stay after the end: a destroyed request still reports its hang-up, which nobody else would hear.
    stream.on('error', (error) => settle(endOf(error, answer), error));
    stream.on('request', (created) => {
      request = created;
      created.on('error', ignore);
      created.once('socket', (socket: Socket) => {
        if (!settled) socket.on('data', countRead);
      });
      // As it is parsed, not as got passes it on: by then ten thousand chunks of a read of 64 KiB would have been kept. Node
      // cannot be stopped within a read, but nothing more is done with the rest of it.
      created.once('response', (received: IncomingMessage) => {
        answer = received;
        watch(received, {
          takes(chunk) {
            if (settled) return false;
            if (chunk !== null) collector.add(chunk);
            if (collector.truncated) settle('answered');
            return true;
          },
        });
      });
      if (!pool.waitsForConnection(created)) return;
      // got's deadline destroys such a request as well, but node reports that only once a connection is free for it.
      connectionDeadline = setTimeout(() => settle('timeout'), timeoutMs ?? sender.timeoutMs);
    });
    stream.resume();
    stream.on('end', () => settle('answered'));
    stream.on('information', () => {
      // The rest of a flood is parsed even after the end, thousands of answers from one read.
      if (settled) return;
      informationalAnswers += 1;
      if (informationalAnswers <= informationalAnswersMax) return;
      settle('failed', new UnexpectedAnswerError('The endpoint sent too many interim answers.'));
    });
    // got listens for this event, so node hands the socket over, out of the pool: it is ours to destroy.
    stream.on('upgrade', (_response: IncomingMessage, socket: ClientRequest['socket']) => {
      socket?.on('error', ignore).destroy();
      settle('failed', new UnexpectedAnswerError('The endpoint answered 101 and switched protocols.'));
    });
  });
}

interface OpenExchange {
  abort: (reason: Error) => void;
  /** Where it is in the array. */
  place: number;
}

/**
 * The exchanges that have not ended. Not a Set: V8's scavenges kept every request that had been in it alive until the next full
 * collection.
 */
export class InFlight {
  readonly #open: OpenExchange[] = [];

  add(abort: OpenExchange['abort']): OpenExchange {
    const open = { abort, place: this.#open.length };
    this.#open.push(open);
    return open;
  }

  remove(open: OpenExchange): void {
    const last = this.#open.pop();
    if (last === undefined || last === open) return;
    last.place = open.place;
    this.#open[open.place] = last;
  }

  abortAll(reason: Error): void {
    for (const { abort } of [...this.#open]) abort(reason);
  }
}

/**
 * A complete 2xx head means that the endpoint has accepted the event. A body that is cut off after it, by whatever error (an early
 * close, a reset, a malformed chunk), changes nothing: another attempt could only repeat the event. Only the deadline does.
 */
function endOf(error: unknown, answer: IncomingMessage | null): ExchangeEnd['kind'] {
  if (error instanceof TimeoutError) return 'timeout';
  const isAccepted = answer?.statusCode !== undefined && answer.statusCode >= 200 && answer.statusCode < 300;
  return isAccepted ? 'answered' : 'failed';
}

function readResponse(answer: IncomingMessage, collector: BodyCollector): EgressResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return {
    statusCode: answer.statusCode ?? 0,
    headers,
    body: collector.bytes(),
    truncated: collector.truncated || !answer.complete,
  };
}

/** For a kept connection got tells the phases of when it was made, which are no part of this request. */
function readTimings(timings: GotRequest['timings'], isKept: boolean): EgressTimings | null {
  if (timings === undefined) return null;
  const { phases, start, socket, lookup } = timings;
  return {
    // Not got's own phase: that is 0 whenever the connection took less than a millisecond, however slow the name was.
    dnsMs: isKept || lookup === undefined || socket === undefined ? null : wholeMs(lookup - socket),
    connectMs: isKept ? null : wholeMs(phases.tcp),
    tlsMs: isKept ? null : wholeMs(phases.tls),
    firstByteMs: wholeMs(phases.firstByte),
    totalMs: wholeMs(phases.total) ?? Math.max(0, Date.now() - start),
  };
}

/** The clock may be set back meanwhile; and an answer may come before the request was sent, which got makes NaN. */
function wholeMs(ms: number | undefined): number | null {
  return ms === undefined || Number.isNaN(ms) ? null : Math.max(0, Math.round(ms));
}

function ignore(): void {}
