import { Buffer } from 'node:buffer';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Got, Request as GotRequest } from 'got';
import { UnexpectedAnswerError } from './failure.ts';

/** A chunk costs memory beside its bytes; an endpoint that sends single bytes would multiply the cap by a hundred. */
const chunksMax = 64;

/** Keeps the first `bytesMax` bytes of a body and notices whether there were more. */
export class BodyCollector {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #bytesSeen = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytesSeen += chunk.length;
    if (this.#chunks.length > chunksMax) this.#chunks = [Buffer.concat(this.#chunks)];
  }

  get truncated(): boolean {
    return this.#bytesSeen > this.#bytesMax;
  }

  /** Always a copy, so that a small body does not keep the socket's read buffer alive. */
  bytes(): Buffer {
    return Buffer.concat(this.#chunks, Math.min(this.#bytesSeen, this.#bytesMax));
  }
}

/** An endpoint may send a few 1xx answers before the real one; without a limit it could send them as fast as it likes. */
const informationalAnswersMax = 16;

export interface EgressResponse {
  statusCode: number;
  /** Lower-case names; several values of one name are joined by ', '. */
  headers: Record<string, string>;
  /** The first bytes of the body as they came: not decompressed, not decoded. */
  body: Buffer;
  /** Whether the body went on after `body`. */
  truncated: boolean;
}

/** What exchanges go out through, and how those still open are ended from outside. */
export interface Sender {
  /** Its defaults say POST and stream: options that are given with a request are merged one by one. */
  client: Got;
  inFlight: Set<(reason: Error) => void>;
}

export interface ExchangeRequest {
  url: URL;
  headers: Record<string, string>;
  body: Buffer | string;
  responseBytesMax: number;
  /** What is left of the request's one deadline. */
  timeoutMs: number;
}

/**
 * How one request on one connection ended. `answered`: whole, or up to the cap. Otherwise `response` is what had come by
 * then, null before the head of the answer was complete.
 */
export type ExchangeEnd =
  | { kind: 'answered'; response: EgressResponse }
  | { kind: 'timeout'; response: EgressResponse | null }
  | { kind: 'failed'; response: EgressResponse | null; error: unknown; request: ClientRequest | null };

/**
 * Sends one POST and resolves with how it ended, exactly once and never with a rejection. From then on nothing of it is
 * left: the socket is back in the pool after a whole answer and destroyed after anything else.
 */
export function exchange({ client, inFlight }: Sender, options: ExchangeRequest): Promise<ExchangeEnd> {
  return new Promise((resolve) => {
    const collector = new BodyCollector(options.responseBytesMax);
    let answer: IncomingMessage | null = null;
    let request: ClientRequest | null = null;
    let informationalAnswers = 0;
    let settled = false;

    const stream = client(options.url, {
      headers: options.headers,
      body: options.body,
    }) as unknown as GotRequest;
    const deadline = setTimeout(() => settle('timeout'), options.timeoutMs);
    const abort = (reason: Error) => settle('failed', reason);
    inFlight.add(abort);

    function settle(kind: ExchangeEnd['kind'], error?: unknown): void {
      if (settled) return;
      settled = true;
      clearTimeout(deadline);
      inFlight.delete(abort);
      const response = answer === null ? null : readResponse(answer, collector);
      if (kind === 'answered' && response !== null) resolve({ kind, response });
      else if (kind === 'timeout') resolve({ kind, response });
      else resolve({ kind: 'failed', response, error, request });
      // An endpoint may answer before it has read the request; such a socket would stay busy for as long as it likes.
      const reusable = kind === 'answered' && !collector.truncated && request?.writableFinished === true;
      if (!reusable) stream.destroy();
    }

    // These listeners stay after the end: a destroyed request still reports its hang-up, which nobody else would hear.
    stream.on('error', (error) => settle('failed', error));
    stream.on('request', (created) => {
      request = created;
      created.on('error', ignore);
    });
    stream.on('response', (received: IncomingMessage) => {
      answer = received;
    });
    stream.on('data', (chunk: Buffer) => {
      if (settled) return;
      collector.add(chunk);
      if (collector.truncated) settle('answered');
    });
    stream.on('end', () => settle('answered'));
    stream.on('information', () => {
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

function readResponse(answer: IncomingMessage, collector: BodyCollector): EgressResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return {
    statusCode: answer.statusCode ?? 0,
    headers,
    body: collector.bytes(),
    truncated: collector.truncated,
  };
}

function ignore(): void {}
