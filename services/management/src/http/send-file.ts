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
 * Sends a file whose headers are set, with `Content-Length`. If its content fails or is shorter, or the client is too slow,
 * closes the connection, which the client notices by that length.
 */
export function sendFile(response: Response, { content }: FileResponse): void {
  if (content === null || response.destroyed || response.req.method === 'HEAD') {
    content?.destroy();
    response.end();
    return;
  }
  const startedMs = performance.now();
  const expectedBytes = Number(response.getHeader('content-length'));
  let sentBytes = 0;
  async function* counted(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of chunks) {
      sentBytes += chunk.length;
      yield chunk;
    }
    // The content may be deleted while it is read, because the file was replaced.
    if (sentBytes !== expectedBytes)
      throw new Error(`content of ${sentBytes} instead of ${expectedBytes} bytes`);
  }
  const timer = setInterval(() => {
    const countedMs = performance.now() - startedMs - DOWNLOAD_PACE.graceMs;
    if (sentBytes < (countedMs * DOWNLOAD_PACE.bytesPerSecond) / 1_000) response.destroy();
  }, DOWNLOAD_PACE.checkMs);
  // An error is the store's, which the owner of the stream logs, or that of a client that has disconnected.
  pipeline(content, counted, response, () => clearInterval(timer));
}
