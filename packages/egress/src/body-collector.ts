import { Buffer } from 'node:buffer';

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
