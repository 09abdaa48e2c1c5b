import { EVENT_LIMITS } from '@runhook/contract';
import { DeadlineError, withinDeadline } from '@runhook/runtime';
import express, { type Request, type RequestHandler, type Response } from 'express';
import {
  BodyTooLargeError,
  InvalidRequestError,
  RequestTimeoutError,
  UnsupportedContentTypeError,
} from './errors.ts';

/** Maximum size of bodies in bytes. */
export const BODY_BYTES_MAX = {
  /** The default: several times the size of the longest list of job ids. */
  default: 64 * 1024,
  /** The longest e-mail address and password at 12 bytes a code point. Callers are anonymous. */
  signIn: 16 * 1024,
  /** 800 KiB: the longest message at 12 bytes a code point (an escaped surrogate pair), and the other fields. */
  run: 12 * EVENT_LIMITS.messageCharactersMax + 32 * 1024,
  /** The longest event at 12 bytes a code point (an escaped surrogate pair); or 500 events of 4 KB. */
  events: 2 * 1024 * 1024,
  /** Steps of a run with their logs, also with the end of the run. */
  steps: 4 * 1024 * 1024,
} as const;
/** The deepest valid body has four levels. The limit protects code that compares or hashes a body recursively. */
const DEPTH_MAX = 20;
/** Maximum number of members and items on all levels of a usual body; checking this many takes no noticeable time. */
const VALUES_MAX = 5_000;
/** Deadline of a complete body: the longest one needs 280 kB/s. */
const BODY_MS = 15_000;

/**
 * Reads the JSON body of a POST or PUT (of some endpoints a form); undefined if there is none. Rejects bodies that are
 * too long, too deep or too slow, or have too many values, before their contents are examined; the error mapper
 * translates the errors.
 * @param bodyMs time the body may take to arrive
 */
export async function readBody(
  request: Request,
  response: Response,
  {
    bytesMax = BODY_BYTES_MAX.default,
    valuesMax = VALUES_MAX,
    bodyMs = BODY_MS,
    bodyType = 'json',
  }: {
    bytesMax?: number | undefined;
    valuesMax?: number | undefined;
    bodyMs?: number | undefined;
    bodyType?: 'json' | 'form' | undefined;
  },
): Promise<unknown> {
  if (request.method !== 'POST' && request.method !== 'PUT') return undefined;
  if (!hasBody(request)) return undefined;
  if (!request.is(CONTENT_TYPES[bodyType])) throw new UnsupportedContentTypeError();
  // The parser would read the complete body before it rejects it.
  if (Number(request.get('content-length') ?? 0) > bytesMax) throw new BodyTooLargeError();
  // A client that sent `Expect: 100-continue` sends its body only after this response, when it is admitted.
  if (request.get('expect') !== undefined && request.httpVersion === '1.1') response.writeContinue();
  await withinDeadline(bodyMs, () => runParser(parserOf(bytesMax, bodyType), request, response)).catch(
    (error: unknown) => {
      throw error instanceof DeadlineError ? new RequestTimeoutError() : error;
    },
  );
  requireBounded(request.body, valuesMax);
  return request.body;
}

function hasBody(request: Request): boolean {
  return request.get('transfer-encoding') !== undefined || Number(request.get('content-length') ?? 0) > 0;
}

function runParser(parser: RequestHandler, request: Request, response: Response): Promise<void> {
  return new Promise((resolve, reject) => {
    parser(request, response, (error?: unknown) => (error ? reject(error) : resolve()));
  });
}

const CONTENT_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' };

const parsers = new Map<string, RequestHandler>();

/** Does not decompress bodies: few clients need it, and a decompressed body may be a thousand times as large. */
function parserOf(bytesMax: number, bodyType: 'json' | 'form'): RequestHandler {
  const key = `${bodyType}:${bytesMax}`;
  const options = { limit: bytesMax, inflate: false };
  const parser =
    parsers.get(key) ??
    (bodyType === 'json'
      ? express.json({ ...options, strict: false })
      : express.urlencoded({ ...options, extended: false }));
  parsers.set(key, parser);
  return parser;
}

/** Iterates level by level, since a body may be nested deeper than the stack allows. */
function requireBounded(body: unknown, valuesMax: number): void {
  let level: unknown[] = [body];
  let values = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    values += level.length;
    if (values > valuesMax) throw invalidBody(`body must not have more than ${valuesMax} values`);
    if (depth > DEPTH_MAX) throw invalidBody(`body must not be nested deeper than ${DEPTH_MAX} levels`);
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    );
  }
}

function invalidBody(message: string): InvalidRequestError {
  return new InvalidRequestError([{ field: 'body', message }]);
}
