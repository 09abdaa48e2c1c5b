import type { IncomingMessage } from 'node:http';
import { DeadlineError, withinDeadline } from '@runhook/runtime';
import type { Request, Response } from 'express';
import {
  BodyTooLargeError,
  InvalidRequestError,
  LengthRequiredError,
  RequestTimeoutError,
  UnsupportedEncodingError,
} from './errors.ts';

/** The body of a request that uploads a file, of any type. Nothing has been read yet. */
export interface FileUpload {
  /** `Content-Length`. */
  bytes: number;
  /** Maximum time in milliseconds that the client may take. */
  durationMaxMs: number;
  /**
   * Yields exactly `bytes` bytes, or throws the rejection of a client that disconnects or is slower than
   * {@link UPLOAD_PACE}. May be called once. A consumer that stops early leaves the connection open for the response.
   */
  content(): AsyncGenerator<Uint8Array, void>;
}

/**
 * Deadline of an upload by its progress: after a grace period the average rate must not be lower. Only the time that is
 * spent waiting for the client counts, since a slow store must not reject it.
 */
const UPLOAD_PACE = { graceMs: 15_000, bytesPerSecond: 64 * 1024 };

const uploads = new WeakSet<IncomingMessage>();

/** Marks a request that uploads a file, so that it may send the file to its end if it is rejected before. */
export function markUpload(request: IncomingMessage): void {
  uploads.add(request);
}

/** Returns the time in milliseconds in which a client of the slowest pace sends the file; 0 for a request without one. */
export function fileTransferMs(request: IncomingMessage): number {
  return uploads.has(request) ? transferMs(Number(request.headers['content-length'] ?? 0)) : 0;
}

/** Checks the headers of an upload. Throws a 411, 413 or 415 before the body is read. */
export function openUpload(
  request: Request,
  response: Response,
  { bytesMax, graceMs = UPLOAD_PACE.graceMs }: { bytesMax: number; graceMs?: number | undefined },
): FileUpload {
  const length = request.get('content-length');
  // Node rejects a length that is not digits, or that Transfer-Encoding contradicts.
  if (length === undefined) throw new LengthRequiredError();
  const bytes = Number(length);
  if (bytes > bytesMax) throw new BodyTooLargeError();
  // A file is stored as it is sent.
  if ((request.get('content-encoding') ?? 'identity').toLowerCase() !== 'identity')
    throw new UnsupportedEncodingError();
  return {
    bytes,
    durationMaxMs: graceMs + transferMs(bytes),
    async *content() {
      // A client that sent `Expect: 100-continue` sends the file only after this response.
      if (request.get('expect') !== undefined && request.httpVersion === '1.1') response.writeContinue();
      yield* receive(request, graceMs);
    },
  };
}

function transferMs(bytes: number): number {
  return (bytes / UPLOAD_PACE.bytesPerSecond) * 1_000;
}

async function* receive(request: Request, graceMs: number): AsyncGenerator<Uint8Array, void> {
  // Destroying the request would close its connection before the response.
  const chunks = request.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]();
  let receivedBytes = 0;
  let waitedMs = 0;
  try {
    while (true) {
      const startedMs = performance.now();
      const next = await withinDeadline(graceMs + transferMs(receivedBytes) - waitedMs, () => chunks.next());
      waitedMs += performance.now() - startedMs;
      if (next.done) return;
      receivedBytes += next.value.length;
      yield next.value;
    }
  } catch (error) {
    if (error instanceof DeadlineError) throw new RequestTimeoutError();
    // The only error of the request is the loss of its connection.
    throw new InvalidRequestError([{ field: 'body', message: 'body is incomplete' }]);
  } finally {
    // Detaches from the request. Not awaited, because after the deadline it waits for data that may never arrive.
    void chunks.return?.();
  }
}
