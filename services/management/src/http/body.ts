import { EVENT_LIMITS } from '@runhook/contract';
import { DeadlineError, withinDeadline } from '@runhook/runtime';
import express, { type Request, type RequestHandler, type Response } from 'express';
import {
  BodyTooLargeError,
  InvalidRequestError,
  RequestTimeoutError,
  UnsupportedContentTypeError,
} from './errors.ts';

/** What a body may have at most, in bytes. */
export const BODY_BYTES_MAX = {
  /** Of every request whose endpoint does not say otherwise; the longest list of jobs fits several times. */
  usual: 64 * 1024,
  /** The longest password, each code point twelve bytes as an escaped pair of surrogates. Needs no credentials. */
  signIn: 16 * 1024,
  /** 800 KiB: the longest reason or status message, each code point twelve bytes as an escaped pair of surrogates, and the other fields. */
  run: 12 * EVENT_LIMITS.messageCharactersMax + 32 * 1024,
  /** The longest event, each code point twelve bytes as an escaped pair of surrogates; or five hundred of four times the usual length. */
  events: 2 * 1024 * 1024,
} as const;
/** Nothing that the API takes is deeper than four, and what compares or hashes a body goes through it by recursion. */
const DEPTH_MAX = 20;
/** Members and items, on all levels: so many are looked at, and told of, without anybody noticing. Of the usual body. */
const VALUES_MAX = 5_000;
/** Deadline of a whole body: the longest one needs 140 kB/s. */
const BODY_MS = 15_000;

/**
 * The JSON body of a POST or PUT; undefined when there is none. What is too long, too deep or too much is refused before
 * anybody looks at what it says, and what does not come, with what the error mapper knows.
 * @param bodyMs how long it may take
 */
export async function readBody(
  request: Request,
  response: Response,
  {
    bytesMax = BODY_BYTES_MAX.usual,
    valuesMax = VALUES_MAX,
    bodyMs = BODY_MS,
  }: { bytesMax?: number | undefined; valuesMax?: number | undefined; bodyMs?: number | undefined },
): Promise<unknown> {
  if (request.method !== 'POST' && request.method !== 'PUT') return undefined;
  if (!hasBody(request)) return undefined;
  if (!request.is('application/json')) throw new UnsupportedContentTypeError();
  // The parser would wait for the end of it before it says so.
  if (Number(request.get('content-length') ?? 0) > bytesMax) throw new BodyTooLargeError();
  // Whoever asks first is let in by now, and sends it only if it hears so.
  if (request.get('expect') !== undefined && request.httpVersion === '1.1') response.writeContinue();
  await withinDeadline(bodyMs, () => parsed(parserOf(bytesMax), request, response)).catch(
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

function parsed(parser: RequestHandler, request: Request, response: Response): Promise<void> {
  return new Promise((resolve, reject) => {
    parser(request, response, (error?: unknown) => (error ? reject(error) : resolve()));
  });
}

const parsers = new Map<number, RequestHandler>();

/** Nobody needs to pack so little, and what is unpacked may be a thousand times what came. */
function parserOf(bytesMax: number): RequestHandler {
  const parser = parsers.get(bytesMax) ?? express.json({ limit: bytesMax, strict: false, inflate: false });
  parsers.set(bytesMax, parser);
  return parser;
}

/** Level by level, since a body may be deeper than the stack. */
function requireBounded(body: unknown, valuesMax: number): void {
  let level: unknown[] = [body];
  let values = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    values += level.length;
    if (values > valuesMax) throw refusal(`body must not hold more than ${valuesMax} values`);
    if (depth > DEPTH_MAX) throw refusal(`body must not be nested deeper than ${DEPTH_MAX} levels`);
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    );
  }
}

function refusal(message: string): InvalidRequestError {
  return new InvalidRequestError([{ field: 'body', message }]);
}
