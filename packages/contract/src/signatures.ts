// Needs node:crypto and nothing else, so that the package for receivers is made of it.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The secrets of a moment: the first signs `Authorization`, and each has a signature of its own beside it. */
export type SigningSecrets = readonly [string, ...string[]];

export const SECRET_PREFIX = 'whsec_';

/** Where the signature is, unless the subscription names another header. */
export const SIGNATURE_HEADER = 'Authorization';

/**
 * The value of a delivery's `Authorization` header, or of the one that its subscription names: the lowercase hex
 * HMAC-SHA256 of the exact body, keyed with the whole text of `hmac_secret` (docs/contract.md#signing). A string is signed
 * as its UTF-8 bytes.
 */
export function sign(body: string | Uint8Array, hmacSecret: string): string {
  return createHmac('sha256', hmacSecret).update(body).digest('hex');
}

/**
 * One signature of the Standard Webhooks scheme, `v1,` included. Its key is the base64 part of the secret, decoded, as the
 * libraries of that scheme hold it.
 */
export function standardWebhooksSignature(
  eventId: string,
  timestampSeconds: number | string,
  body: string | Uint8Array,
  hmacSecret: string,
): string {
  const key = Buffer.from(hmacSecret.slice(SECRET_PREFIX.length), 'base64');
  const signed = createHmac('sha256', key).update(`${eventId}.${timestampSeconds}.`).update(body);
  return `v1,${signed.digest('base64')}`;
}

/**
 * The three headers of the Standard Webhooks scheme, which receivers with those libraries use for replay
 * protection. With two secrets there are two signatures, either of which is enough for them.
 * @param timestampSeconds seconds since the epoch at which this attempt is signed
 */
export function standardWebhooksHeaders(
  eventId: string,
  timestampSeconds: number,
  body: string,
  hmacSecrets: SigningSecrets,
): { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string } {
  const signatures = hmacSecrets.map((hmacSecret) =>
    standardWebhooksSignature(eventId, timestampSeconds, body, hmacSecret),
  );
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}

/**
 * Whether `authorization` is the signature of the raw body, compared in constant time. False for anything that is
 * not 64 lowercase hex digits, undefined included.
 */
export function verify(
  body: string | Uint8Array,
  hmacSecret: string,
  authorization: string | undefined,
): boolean {
  if (typeof authorization !== 'string' || !/^[0-9a-f]{64}$/.test(authorization)) return false;
  return timingSafeEqual(Buffer.from(sign(body, hmacSecret)), Buffer.from(authorization));
}
