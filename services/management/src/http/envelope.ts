import { wellFormedText } from '@runhook/contract';
import { isConversionRejection, isDatabaseUnavailable } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import type { ErrorRequestHandler, Response } from 'express';
import {
  ApiError,
  BodyTooLargeError,
  InvalidRequestError,
  NotFoundError,
  UnavailableError,
  UnexpectedFaultError,
  UnsupportedContentTypeError,
} from './errors.ts';
import type { Page } from './query-parameters.ts';
import { type Log, requestState } from './request-telemetry.ts';

/** What an endpoint answers: the success half of the envelope (docs/contract.md#requests-and-answers). */
export interface Answer {
  /** HTTP status and `status.code`. */
  code: number;
  data: unknown;
  extra?: unknown;
  /** On the answer to a delete only. */
  isSuccess?: true;
  headers?: Record<string, string | string[]>;
  /** In place of the envelope. */
  stream?: EventStream;
}

/** An answer that goes on: server-sent events, as they happen. */
export interface EventStream {
  /** Called before the head is sent; sends nothing. Throws the error that the caller gets instead of the stream. */
  begin(listener: { send(event: string, data: object): void; end(): void }): BegunStream;
}

export interface BegunStream {
  /** The head goes out when this resolves: whatever happens from then on is sent. */
  ready: Promise<void>;
  /** Called when the listener has gone, whoever left. */
  leave(): void;
}

export function sendAnswer(response: Response, answer: Answer): void {
  const { code, data, extra, isSuccess, headers = {}, stream } = answer;
  if (stream !== undefined) {
    sendStream(response, stream);
    return;
  }
  const status = isSuccess === undefined ? { code } : { code, is_success: isSuccess };
  const envelope = extra === undefined ? { data, status } : { data, status, extra };
  // Rows of earlier releases may contain noncharacters (docs/contract.md#text). JSON has them within its strings only.
  response
    .status(code)
    .set(headers)
    .type('json')
    .send(wellFormedText(JSON.stringify(envelope)));
}

/** Below what proxies take for a connection that nobody uses, and small: most tabs that are open hear nothing else. */
export const SIGN_OF_LIFE = { everyMs: 20_000, text: ':\n\n' };
/** Who does not read is not waited for. */
const UNREAD_BYTES_MAX = 65_536;

function sendStream(response: Response, stream: EventStream): void {
  // A caller who has left cannot end the stream: its response has emitted `close` already.
  if (response.destroyed) return;
  if (response.req.method === 'HEAD') {
    setStreamHead(response);
    response.end();
    return;
  }
  const write = (text: string) => {
    if (response.writableLength > UNREAD_BYTES_MAX) response.destroy();
    else if (!response.writableEnded) response.write(text);
  };
  const { ready, leave } = stream.begin({
    send: (event, data) => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    end: () => response.end(),
  });
  setStreamHead(response);
  let signs: NodeJS.Timeout | undefined;
  response.once('close', () => {
    clearInterval(signs);
    leave();
  });
  void ready.then(() => {
    if (response.destroyed) return;
    write('retry: 2000\n\n');
    signs = setInterval(write, SIGN_OF_LIFE.everyMs, SIGN_OF_LIFE.text);
  });
}

function setStreamHead(response: Response): void {
  requestState(response).isStream = true;
  // Keeps proxies from buffering the stream.
  response.status(200).set({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
}

/** The failure half of the envelope. `developer_message` is "" when there is nothing to add: typed clients decode a string. */
export function failureBody({ statusCode: code, userMessage, developerMessage, problems }: ApiError): object {
  const status = { code, is_success: false, user_message: userMessage, developer_message: developerMessage };
  return { status: problems === undefined ? status : { ...status, errors: problems }, data: null };
}

/** The envelope's `extra` of a list (docs/contract.md#requests-and-answers). */
export function pageExtra(page: Page, totalCount: number, count: number) {
  return {
    pagination: { total_count: totalCount, count },
    filters: { offset: page.offset, limit: page.limit },
  };
}

/** The one place that turns what was thrown into an answer. */
export function mapErrors(log: Log): ErrorRequestHandler {
  return (thrown, _request, response, next) => {
    // The answer has begun: only Express can still do something about it, by cutting the connection.
    if (response.headersSent) return next(thrown);
    const { requestId, route } = requestState(response);
    const error = apiErrorFor(thrown, requestId);
    if (error.statusCode >= 500)
      log.error({ err: thrown, requestId, route, code: error.code }, 'request failed');
    response.status(error.statusCode).set(error.headers).json(failureBody(error));
  };
}

function apiErrorFor(thrown: unknown, requestId: string): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (isDatabaseUnavailable(thrown) || isConversionRejection(thrown)) return new UnavailableError();
  if (thrown instanceof QueueUnavailableError) return new UnavailableError();
  // Express decodes path parameters; one that does not decode names nothing.
  if (thrown instanceof URIError) return new NotFoundError();
  return bodyError(thrown) ?? new UnexpectedFaultError(requestId);
}

/** What Express's body parser throws, by its `type`. */
function bodyError(thrown: unknown): ApiError | null {
  const type = thrown instanceof Error && 'type' in thrown ? thrown.type : null;
  switch (type) {
    case 'entity.too.large':
      return new BodyTooLargeError();
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return new UnsupportedContentTypeError();
    case 'entity.parse.failed':
      return new InvalidRequestError([{ field: 'body', message: 'body must be valid JSON' }]);
    case 'request.aborted':
    case 'request.size.invalid':
      return new InvalidRequestError([{ field: 'body', message: 'body is incomplete' }]);
    default:
      return null;
  }
}
