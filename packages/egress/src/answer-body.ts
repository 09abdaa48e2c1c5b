import { Buffer } from 'node:buffer';
import { IncomingMessage } from 'node:http';

/** A chunk costs memory beside its bytes; an endpoint that sends single bytes would multiply the cap by a hundred. */
const chunksMax = 64;

/** An endpoint that sends its answer byte by byte costs as much for each as for thousands at a time. */
export const chunksSeenMax = 256;

/** Keeps the first `bytesMax` bytes of a body, or what came in its first chunks, and notices whether there was more. */
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

  /** Takes what has come for all that will be read. */
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

  /** Always a copy, so that a small body does not keep the socket's read buffer alive. */
  bytes(): Buffer {
    return Buffer.concat(this.#chunks, Math.min(this.#bytesSeen, this.#bytesMax));
  }
}

interface Watcher {
  /** Whether the answer is to have the chunk; null is its end. */
  takes(chunk: Buffer | null): boolean;
}

const watcher = Symbol('watcher');

/**
 * Passes each chunk of a response to a watcher. All responses share one function: with a closure on each response, V8's scavenges
 * kept ended requests alive until the next full collection.
 */
export function watch(answer: IncomingMessage & { [watcher]?: Watcher }, by: Watcher): void {
  answer[watcher] = by;
  answer.push = pushWatched;
}

function pushWatched(
  this: IncomingMessage & { [watcher]?: Watcher },
  chunk: Buffer | null,
  encoding?: BufferEncoding,
): boolean {
  // A false would have node stop the socket once for each.
  return this[watcher]?.takes(chunk) === false || IncomingMessage.prototype.push.call(this, chunk, encoding);
}
