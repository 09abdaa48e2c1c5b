import type { Buffer } from 'node:buffer';
import { MASK } from './delivery-headers.ts';
import { wellFormedText } from './text.ts';

// The parts of a request and its response that the log stores and a test returns: docs/contract.md#attempts.

/** Request headers that contain no credentials. All others of a delivery are signatures or custom headers. */
const UNMASKED_HEADERS = new Set([
  'content-type',
  'user-agent',
  'webhook-id',
  'webhook-timestamp',
  'traceparent',
  'tracestate',
]);

/** Masks request headers for the log, so that its readers cannot replay a signature or authenticate at a gateway. */
export function maskHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, UNMASKED_HEADERS.has(name) ? value : MASK]),
  );
}

const LOGGED_BYTES_MAX = 16_384;

/**
 * Returns the part of a response body that the log stores: up to 16 KiB as UTF-8, with U+FFFD for invalid UTF-8 and
 * invalid characters such as NUL, which PostgreSQL text cannot contain.
 */
export function toLoggedBody(body: Buffer, isCut: boolean): { body: string; truncated: boolean } {
  const logged = body.subarray(0, LOGGED_BYTES_MAX);
  return {
    body: wellFormedText(logged.toString('utf8')),
    truncated: isCut || body.length > LOGGED_BYTES_MAX,
  };
}
