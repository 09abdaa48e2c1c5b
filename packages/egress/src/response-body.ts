import { Buffer } from 'node:buffer';
import { IncomingMessage } from 'node:http';

/**
 * Bounds the stored chunks: each costs memory in addition to its bytes, so single-byte chunks would exceed the cap a
 * hundredfold.
 */
const chunksMax = 64;

/** Bounds the chunks that are read: an endpoint that sends single bytes causes the full cost of a chunk for each. */
export const chunksSeenMax = 256;

/** Collects the first `bytesMax` bytes of a body within the chunk limits, and records whether the body was longer. */
export class BodyCollector {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #bytesSeen = 0;
  #chunksSeen = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(chunk: Buffer): void {
    this.#chunksSeen += 1;
    this.#chunks.push(chunk);
    this.#bytesSeen += chunk.length;
    if (this.#chunks.length > chunksMax) this.#chunks = [Buffer.concat(this.#chunks)];
  }

  /** Marks the body as truncated, because no further chunks will be read. */
  stop(): void {
    this.#chunksSeen = Number.POSITIVE_INFINITY;
  }

  get bytesSeen(): number {
    return this.#bytesSeen;
  }

  get chunksSeen(): number {
    return this.#chunksSeen;
  }

  get truncated(): boolean {
    return this.#bytesSeen > this.#bytesMax || this.#chunksSeen > chunksSeenMax;
  }

  /** Returns a copy, because a slice of a small body would retain the socket's whole read buffer. */
  bytes(): Buffer {
    return Buffer.concat(this.#chunks, Math.min(this.#bytesSeen, this.#bytesMax));
  }
}

interface ChunkFilter {
  /** Whether the response may receive the chunk; null marks its end. */
  accepts(chunk: Buffer | null): boolean;
}

const filterKey = Symbol('watcher');

/**
 * Lets the response receive only the chunks that the filter accepts. All responses share one function, because with a
 * closure per response V8's scavenges retained ended requests until the next full collection.
 */
export function filterChunks(
  response: IncomingMessage & { [filterKey]?: ChunkFilter },
  filter: ChunkFilter,
): void {
  response[filterKey] = filter;
  response.push = pushFiltered;
}

function pushFiltered(
  this: IncomingMessage & { [filterKey]?: ChunkFilter },
  chunk: Buffer | null,
  encoding?: BufferEncoding,
): boolean {
  // Returning false would make Node pause the socket once for each chunk.
  return (
    this[filterKey]?.accepts(chunk) === false || IncomingMessage.prototype.push.call(this, chunk, encoding)
  );
}
