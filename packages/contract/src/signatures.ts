// Imports only node:crypto, because the package for receivers includes this file.
import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The valid secrets at a point in time: the first one signs the signature header, and each one makes a Standard
 * Webhooks signature.
 */
export type SigningSecrets = readonly [string, ...string[]];

export const SECRET_PREFIX = 'whsec_';

/** The signature header, unless the subscription names another. */
export const SIGNATURE_HEADER = 'Authorization';

/**
 * Returns the value of a delivery's signature header: the lowercase hex HMAC-SHA256 of the exact body, keyed with the
 * whole text of `hmac_secret` (docs/contract.md#signing). A string is signed as its UTF-8 bytes.
 */
export function sign(body: string | Uint8Array, hmacSecret: string): string {
  return createHmac('sha256', hmacSecret).update(body).digest('hex');
}

/**
 * Returns one signature of the Standard Webhooks scheme, including `v1,`. Its key is the decoded base64 part of the
 * secret, as in the libraries of that scheme.
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
 * Returns the three headers of the Standard Webhooks scheme, which receivers with those libraries use for replay
 * protection. Two secrets give two signatures, and the libraries accept either.
 * @param timestampSeconds time of this attempt's signature, in seconds since the epoch
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
 * Whether `authorization` is the signature of the raw body, compared in constant time. False for undefined and for
 * anything other than 64 lowercase hex digits.
 */
export function verify(
  body: string | Uint8Array,
  hmacSecret: string,
  authorization: string | undefined,
): boolean {
  if (typeof authorization !== 'string' || !/^[0-9a-f]{64}$/.test(authorization)) return false;
  return timingSafeEqual(Buffer.from(sign(body, hmacSecret)), Buffer.from(authorization));
}
