import type { Buffer } from 'node:buffer';
import { MASK } from './delivery-headers.ts';
import { wellFormedText } from './text.ts';

// What is kept of a request and its answer, or told of a test's: docs/contract.md#attempts.

/** Request headers that tell nothing that opens anything. Whatever else a delivery has is a signature, or its owner's. */
const TOLD = new Set([
  'content-type',
  'user-agent',
  'webhook-id',
  'webhook-timestamp',
  'traceparent',
  'tracestate',
]);

/** Request headers as the log keeps them: whoever reads it must not be able to replay a signature or pass a gateway. */
export function maskedHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, TOLD.has(name) ? value : MASK]),
  );
}

const LOGGED_BYTES_MAX = 16_384;

/**
 * The part of a response body that the log keeps: up to 16 KiB as UTF-8, with U+FFFD for what is not UTF-8 and for
 * invalid characters, such as NUL, which PostgreSQL text cannot hold.
 */
export function loggedBody(body: Buffer, cutBefore: boolean): { body: string; truncated: boolean } {
  const kept = body.subarray(0, LOGGED_BYTES_MAX);
  return {
    body: wellFormedText(kept.toString('utf8')),
    truncated: cutBefore || body.length > LOGGED_BYTES_MAX,
  };
}
