import { pipeline, type Readable } from 'node:stream';
import type { Response } from 'express';

/** A file that replaces the envelope. */
export interface FileResponse {
  /** Null for a response without a body. The HTTP layer reads or destroys it. */
  content: Readable | null;
}

/** Slowest permitted client of a download, which occupies a connection to the store, and the interval of the checks. */
const DOWNLOAD_PACE = { graceMs: 60_000, bytesPerSecond: 16 * 1024, checkMs: 10_000 };

/**
 * Sends a file whose headers are set. If its content fails, or the client is too slow, closes the connection, which the
 * client notices by `Content-Length`.
 */
export function sendFile(response: Response, { content }: FileResponse): void {
  if (content === null) {
    response.end();
    return;
  }
  if (response.destroyed || response.req.method === 'HEAD') {
    content.destroy();
    response.end();
    return;
  }
  const startedMs = performance.now();
  let sentBytes = 0;
  content.on('data', (chunk: Uint8Array) => {
    sentBytes += chunk.length;
  });
  const timer = setInterval(() => {
    const countedMs = performance.now() - startedMs - DOWNLOAD_PACE.graceMs;
    if (sentBytes < (countedMs * DOWNLOAD_PACE.bytesPerSecond) / 1_000) response.destroy();
  }, DOWNLOAD_PACE.checkMs);
  // An error is the store's, which the owner of the stream logs, or that of a client that has disconnected.
  pipeline(content, response, () => clearInterval(timer));
}
