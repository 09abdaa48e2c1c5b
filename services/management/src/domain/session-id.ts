import { createHash, randomBytes } from 'node:crypto';

const BYTES = 32;
const PATTERN = /^[\w-]{43}$/;

/** 256 random bits in base64url: what the browser's cookie holds. */
export function createSessionId(): string {
  return randomBytes(BYTES).toString('base64url');
}

/** What the database holds; null when the text cannot be an id. 256 random bits need no slow hash. */
export function hashSessionId(text: string): Uint8Array<ArrayBuffer> | null {
  return PATTERN.test(text) ? new Uint8Array(createHash('sha256').update(text).digest()) : null;
}
