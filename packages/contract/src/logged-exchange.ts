import type { Buffer } from 'node:buffer';
import { MASK } from './delivery-headers.ts';
import { EchoMask } from './echoed-secrets.ts';
import { SECRET_PREFIX, type SigningSecrets } from './signatures.ts';
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

/** The headers of a request, and the secrets that its response may echo. */
export interface LoggedRequest {
  /** Names are in lower case. */
  headers: Readonly<Record<string, string>>;
  /** Custom headers of the subscription, which `headers` contains. */
  customHeaders: Readonly<Record<string, string>>;
  hmacSecrets: SigningSecrets;
  /** Values of the format's options, which the body contains. */
  options?: Readonly<Record<string, string>>;
}

/** Returns the parts of a response that the log stores, with echoed secrets of the request masked. */
export function toLoggedResponse(
  response: { headers: Readonly<Record<string, string>>; body: Buffer; truncated: boolean },
  request: LoggedRequest,
): { headers: Record<string, string>; body: string; truncated: boolean } {
  const mask = echoMaskOf(request);
  const { body, truncated } = toLoggedBody(response.body, response.truncated);
  const entries = Object.entries(response.headers);
  // Masked as one text: there may be hundreds of headers, and no secret contains a line feed.
  const values = mask.apply(entries.map(([, value]) => value).join('\n')).split('\n');
  const headers = entries.map(([name], index) => [name, values[index] ?? MASK]);
  return { headers: Object.fromEntries(headers), body: mask.apply(body, truncated), truncated };
}

/** Headers such as `accept`, whose values are no secrets and occur in responses. */
const NEGOTIATION_HEADER = /^accept(-|$)/i;
/** Minimum length of a part of a value, such as the token in `Bearer …`, that is also masked alone. */
const PART_CHARACTERS_MIN = 8;

function echoMaskOf({ headers, customHeaders, hmacSecrets, options = {} }: LoggedRequest): EchoMask {
  const custom = Object.entries(customHeaders).filter(([name]) => !NEGOTIATION_HEADER.test(name));
  const customNames = new Set(Object.keys(customHeaders).map((name) => name.toLowerCase()));
  const signatures = Object.entries(headers)
    .filter(([name]) => !UNMASKED_HEADERS.has(name) && !customNames.has(name))
    .map(([, value]) => value);
  return new EchoMask({
    exact: [
      ...signatures.flatMap(withParts),
      ...hmacSecrets.flatMap((secret) => [secret, secret.slice(SECRET_PREFIX.length)]),
    ],
    encoded: [...custom.flatMap(([, value]) => withParts(value)), ...Object.values(options)],
  });
}

/** Returns the value, and its long parts between spaces and commas. */
function withParts(value: string): string[] {
  return [value, ...value.split(/[ ,]/).filter(({ length }) => length >= PART_CHARACTERS_MIN)];
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
