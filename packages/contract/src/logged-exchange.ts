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

/** The shortest that {@link toldHeaders} makes the same headers of, masked. @param headers as they are sent, or masked */
export function keptHeaders(headers: Record<string, string>, sent: SentHeaders): KeptHeaders {
  const userAgent = headers['user-agent'];
  return userAgent !== undefined && areUsual(headers, sent) ? userAgent : maskedHeaders(headers);
}

/** Spelled out: each delivery is asked. */
function areUsual(headers: Record<string, string>, { eventId, startedAtMs }: SentHeaders): boolean {
  return (
    headers['webhook-id'] === eventId &&
    headers['webhook-timestamp'] === timestampHeader(startedAtMs) &&
    headers['content-type'] === 'application/json' &&
    SIGNATURE_NAME in headers &&
    'webhook-signature' in headers &&
    Object.keys(headers).length === USUAL_COUNT
  );
}

const SIGNATURE_NAME = SIGNATURE_HEADER.toLowerCase();
const USUAL_COUNT = Object.keys(usualHeaders('', { eventId: '', startedAtMs: 0 })).length;

function timestampHeader(startedAtMs: number): string {
  return String(Math.floor(startedAtMs / 1_000));
}

/** The request headers of an attempt, as the log keeps them. */
export function toldHeaders(kept: KeptHeaders, sent: SentHeaders): Record<string, string> {
  return typeof kept === 'string' ? usualHeaders(kept, sent) : kept;
}

function usualHeaders(userAgent: string, { eventId, startedAtMs }: SentHeaders): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': userAgent,
    [SIGNATURE_NAME]: MASK,
    'webhook-id': eventId,
    'webhook-timestamp': timestampHeader(startedAtMs),
    'webhook-signature': MASK,
  };
}

const DATE = 'date';
const DATE_PLACE = 0;

/**
 * Headers that answers have over and over, by name or with their usual value. The log keeps their places, and its rows last:
 * no release may move or change one, and new ones come behind. A date has none: it follows from when it was asked for.
 */
const USUAL_OF_ANSWERS: readonly (readonly [name: string, value?: string])[] = [
  [DATE],
  ['connection', 'keep-alive'],
  ['connection', 'close'],
  ['keep-alive', 'timeout=5'],
  ['content-length', '0'],
  ['content-type', 'application/json'],
  ['content-type', 'application/json; charset=utf-8'],
  ['content-type', 'text/plain'],
  ['content-type', 'text/plain; charset=utf-8'],
  ['content-type', 'text/html; charset=utf-8'],
  ['transfer-encoding', 'chunked'],
  ['content-encoding', 'gzip'],
  ['vary', 'Accept-Encoding'],
  ['server', 'nginx'],
  ['server', 'cloudflare'],
  ['x-powered-by', 'Express'],
  ['etag'],
  ['cache-control', 'no-cache'],
  ['cache-control', 'no-store'],
  ['strict-transport-security', 'max-age=31536000; includeSubDomains'],
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'SAMEORIGIN'],
  ['x-xss-protection', '0'],
  ['referrer-policy', 'no-referrer'],
  ['access-control-allow-origin', '*'],
  ['via', '1.1 google'],
  ['alt-svc', 'h3=":443"; ma=86400'],
  ['cf-cache-status', 'DYNAMIC'],
  ['cf-ray'],
  ['x-request-id'],
  ['x-amzn-requestid'],
  ['x-amzn-trace-id'],
  ['apigw-requestid'],
  ['x-runtime'],
  ['x-cache'],
  ['expires'],
  ['pragma', 'no-cache'],
  ['nel'],
  ['report-to'],
  ['location'],
];

/** By name: the first place, and those of usual values. */
const PLACES_OF_ANSWERS = new Map<string, { first: number; byValue: Map<string | undefined, number> }>();
for (const [place, [name, value]] of USUAL_OF_ANSWERS.entries()) {
  const places = PLACES_OF_ANSWERS.get(name) ?? { first: place, byValue: new Map() };
  PLACES_OF_ANSWERS.set(name, places);
  if (value !== undefined) places.byValue.set(value, place);
}

/** Stands before the name of a header that is not among them. */
const NAMED = -1;

/**
 * The headers of an answer in the log, in their order: each a place among the usual ones, with its value behind it unless it
 * is the usual one, or {@link NAMED}, its name and its value. Of a date the value is the seconds since the attempt began. Rows
 * of 0.1.0 have an object.
 */
export type KeptAnswerHeaders = Record<string, string> | readonly (string | number)[];

/** What {@link toldAnswerHeaders} makes the same headers of. */
export function keptAnswerHeaders(headers: Record<string, string>, startedAtMs: number): KeptAnswerHeaders {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (name === DATE) {
      const dateMs = dateOf(value);
      if (dateMs === null) return [NAMED, name, value];
      const seconds = (dateMs - inSeconds(startedAtMs)) / 1_000;
      return seconds === 0 ? [DATE_PLACE] : [DATE_PLACE, String(seconds)];
    }
    const places = PLACES_OF_ANSWERS.get(name);
    if (places === undefined) return [NAMED, name, value];
    const usual = places.byValue.get(value);
    return usual === undefined ? [places.first, value] : [usual];
  });
}

/** The headers of an attempt's answer, as the log keeps them. */
export function toldAnswerHeaders(kept: KeptAnswerHeaders, startedAtMs: number): Record<string, string> {
  if (!isInPlaces(kept)) return kept;
  const headers: [string, string][] = [];
  let index = 0;
  const nextText = () => (typeof kept[index] === 'string' ? (kept[index++] as string) : undefined);
  while (index < kept.length) {
    const place = Number(kept[index++]);
    const [name, usual] = place === NAMED ? [nextText()] : (USUAL_OF_ANSWERS[place] ?? []);
    const value = nextText();
    const told = place === DATE_PLACE ? dateHeader(startedAtMs, Number(value ?? 0)) : (value ?? usual);
    headers.push([name ?? '', told ?? '']);
  }
  return Object.fromEntries(headers);
}

function isInPlaces(kept: KeptAnswerHeaders): kept is readonly (string | number)[] {
  return Array.isArray(kept);
}

/** The answers of a second have the same date. */
let lastDate: { text: string; ms: number | null } = { text: '', ms: null };

/** Null unless it is written as `dateHeader` would. */
function dateOf(text: string): number | null {
  if (text !== lastDate.text) {
    const ms = Date.parse(text);
    lastDate = { text, ms: new Date(ms).toUTCString() === text ? ms : null };
  }
  return lastDate.ms;
}

function dateHeader(startedAtMs: number, seconds: number): string {
  return new Date(inSeconds(startedAtMs) + seconds * 1_000).toUTCString();
}

function inSeconds(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000;
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
