import type { Buffer } from 'node:buffer';
import { MASK } from './delivery-headers.ts';
import { SIGNATURE_HEADER } from './signatures.ts';

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

/**
 * Request headers in the log. Nearly all deliveries have the same but for what their event and their time tell: of those
 * the log keeps the value of `user-agent` alone.
 */
export type KeptHeaders = Record<string, string> | string;

/** What the usual headers are made of. */
export interface SentHeaders {
  eventId: string;
  /** When the attempt began; its signature is of the same second, unless that was just over. */
  startedAtMs: number;
}

/** The shortest that {@link toldHeaders} makes the same headers of. @param headers masked */
export function keptHeaders(headers: Record<string, string>, sent: SentHeaders): KeptHeaders {
  const userAgent = headers['user-agent'] ?? '';
  const usual = Object.entries(usualHeaders(userAgent, sent));
  const isUsual =
    usual.length === Object.keys(headers).length && usual.every(([name, value]) => headers[name] === value);
  return isUsual ? userAgent : headers;
}

/** The request headers of an attempt, as the log keeps them. */
export function toldHeaders(kept: KeptHeaders, sent: SentHeaders): Record<string, string> {
  return typeof kept === 'string' ? usualHeaders(kept, sent) : kept;
}

function usualHeaders(userAgent: string, { eventId, startedAtMs }: SentHeaders): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': userAgent,
    [SIGNATURE_HEADER.toLowerCase()]: MASK,
    'webhook-id': eventId,
    'webhook-timestamp': String(Math.floor(startedAtMs / 1_000)),
    'webhook-signature': MASK,
  };
}

const LOGGED_BYTES_MAX = 16_384;

/**
 * The part of a response body that the log keeps: up to 16 KiB as UTF-8, with U+FFFD for what is not UTF-8 and for
 * NUL, which PostgreSQL text cannot hold.
 */
export function loggedBody(body: Buffer, cutBefore: boolean): { body: string; truncated: boolean } {
  const kept = body.subarray(0, LOGGED_BYTES_MAX);
  return {
    body: kept.toString('utf8').replaceAll('\0', '\uFFFD'),
    truncated: cutBefore || body.length > LOGGED_BYTES_MAX,
  };
}
