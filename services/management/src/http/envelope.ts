import { ArtifactStoreError } from '@runhook/artifacts';
import { wellFormedText } from '@runhook/contract';
import { isConversionRejection, isDatabaseUnavailable } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import type { ErrorRequestHandler, Response } from 'express';
import { sendCompressed } from './compressed-response.ts';
import {
  ApiError,
  BodyTooLargeError,
  InvalidRequestError,
  NotFoundError,
  UnavailableError,
  UnhandledError,
  UnsupportedCharsetError,
  UnsupportedEncodingError,
} from './errors.ts';
import type { Page } from './query-parameters.ts';
import { type Log, requestState } from './request-telemetry.ts';
import { type FileResponse, sendFile } from './send-file.ts';

/** Result of an endpoint: the success form of the envelope (docs/contract.md#requests-and-responses). */
export interface EndpointResponse {
  /** HTTP status and `status.code`. */
  code: number;
  data: unknown;
  extra?: unknown;
  /** Set only in the response to a delete. */
  isSuccess?: true;
  headers?: Record<string, string | string[]>;
  /** Replaces the envelope. */
  stream?: EventStream;
  /** A page for browsers, instead of the envelope. */
  page?: { html: string; contentSecurityPolicy: string };
  /** A plain text, instead of the envelope, which browsers save as a file of that name. */
  text?: { content: string; fileName: string };
  /** Replaces the envelope; `headers` must have `content-length`. */
  file?: FileResponse;
  /** Marks a redirect, which has no envelope. */
  isBodiless?: true;
}

/** A response of server-sent events that stays open. */
export interface EventStream {
  /** Called before the headers are sent; sends nothing. An error that it throws replaces the stream. */
  start(listener: { send(event: string, data: object): void; end(): void }): StreamHandle;
}

export interface StreamHandle {
  /** The headers are sent when this resolves: every later change is sent. */
  ready: Promise<void>;
  /** Releases the stream. The HTTP layer calls it once the connection has ended, whichever side closed it. */
  close(): void;
}

const V2 = '/api/v2/';
/** Clients of version 2 read these fields of every response; those of version 3 have never had them. */
const V2_SUCCESS = { is_success: true, user_message: 'Success!', developer_message: '' } as const;

/** @param isCompressible whether the response may be compressed, because it contains no secret */
export async function sendResponse(
  response: Response,
  endpointResponse: EndpointResponse,
  isCompressible: boolean,
): Promise<void> {
  const { code, data, extra, isSuccess, headers = {}, stream } = endpointResponse;
  if (stream !== undefined) {
    sendStream(response, stream);
    return;
  }
  const { page, text, isBodiless, file } = endpointResponse;
  if (text !== undefined) {
    response.status(code).set(headers).set('content-security-policy', "default-src 'none'; sandbox");
    response.attachment(text.fileName).type('text/plain').send(text.content);
    return;
  }
  if (file !== undefined) {
    response.status(code);
    // Express would add a charset to the type.
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    sendFile(response, file);
    return;
  }
  if (page !== undefined) {
    response.status(code).set(headers).set('content-security-policy', page.contentSecurityPolicy);
    response.type('html').send(page.html);
    return;
  }
  if (isBodiless) {
    response.status(code).set(headers).end();
    return;
  }
  const status = requestState(response).route?.startsWith(V2)
    ? { code, ...V2_SUCCESS }
    : isSuccess === undefined
      ? { code }
      : { code, is_success: isSuccess };
  const envelope = extra === undefined ? { data, status } : { data, status, extra };
  // Rows of earlier releases may contain noncharacters (docs/contract.md#text). JSON has them within its strings only.
  const json = wellFormedText(JSON.stringify(envelope));
  response.status(code).set(headers).type('json');
  if (isCompressible) await sendCompressed(response, json);
  else response.send(json);
}

/**
 * Comment that keeps a stream open: sent within the idle timeout of proxies, and short, as most open tabs receive
 * nothing else.
 */
export const HEARTBEAT = { intervalMs: 20_000, text: ':\n\n' };
/** A client that has this much unread data is disconnected. */
const UNREAD_BYTES_MAX = 65_536;

function sendStream(response: Response, stream: EventStream): void {
  // If the caller has disconnected, the response has already emitted `close`, and nothing would release the stream.
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
  const { ready, close } = stream.start({
    send: (event, data) => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    end: () => response.end(),
  });
  setStreamHead(response);
  let heartbeat: NodeJS.Timeout | undefined;
  response.once('close', () => {
    clearInterval(heartbeat);
    close();
  });
  void ready.then(() => {
    if (response.destroyed) return;
    write('retry: 2000\n\n');
    heartbeat = setInterval(write, HEARTBEAT.intervalMs, HEARTBEAT.text);
  });
}

function setStreamHead(response: Response): void {
  requestState(response).isStream = true;
  // Keeps proxies from buffering the stream.
  response.status(200).set({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
}

/** Returns the failure form of the envelope. `developer_message` is never null: typed clients decode a string. */
export function failureBody(error: ApiError): object {
  const { statusCode: code, userMessage, developerMessage, problems, data } = error;
  const status = { code, is_success: false, user_message: userMessage, developer_message: developerMessage };
  return { status: problems === undefined ? status : { ...status, errors: problems }, data };
}

/** Returns the envelope's `extra` of a list (docs/contract.md#requests-and-responses). */
export function pageExtra(page: Page, totalCount: number, count: number) {
  return {
    pagination: { total_count: totalCount, count },
    filters: { offset: page.offset, limit: page.limit },
  };
}

/** Translates every thrown error into a response. */
export function mapErrors(log: Log): ErrorRequestHandler {
  return (thrown, _request, response, next) => {
    // Once the headers are sent, only Express can handle the error, by closing the connection.
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
  if (thrown instanceof ArtifactStoreError) return new UnavailableError(thrown.message);
  // Express throws this for a path parameter that cannot be decoded, which identifies nothing.
  if (thrown instanceof URIError) return new NotFoundError();
  return bodyError(thrown) ?? new UnhandledError(requestId);
}

/** Translates errors of Express's body parser by their `type`. */
function bodyError(thrown: unknown): ApiError | null {
  const type = thrown instanceof Error && 'type' in thrown ? thrown.type : null;
  switch (type) {
    case 'entity.too.large':
      return new BodyTooLargeError();
    case 'charset.unsupported':
      return new UnsupportedCharsetError();
    case 'encoding.unsupported':
      return new UnsupportedEncodingError();
    case 'entity.parse.failed':
      return new InvalidRequestError([{ field: 'body', message: 'body must be valid JSON' }]);
    case 'request.aborted':
    case 'request.size.invalid':
      return new InvalidRequestError([{ field: 'body', message: 'body is incomplete' }]);
    default:
      return null;
  }
}
