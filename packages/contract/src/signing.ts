import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { SIGNATURE_HEADER } from './delivery-headers.ts';

/** A subscription's secret, and the rotation that is under way or has just ended; encrypted. */
export interface RotatingSecret {
  current: string;
  rotation: {
    next: string;
    /** Milliseconds since the epoch. */
    endsAtMs: number;
  } | null;
}

/** The secrets of a moment: the first signs `Authorization`, and each has a signature of its own beside it. */
export type SigningSecrets = readonly [string, ...string[]];

/** From the columns of a subscription. @param endsAtMicros since the epoch; means nothing without a next one */
export function rotatingSecret(
  current: string,
  next: string | null,
  endsAtMicros: string | bigint | null,
): RotatingSecret {
  return { current, rotation: next === null ? null : { next, endsAtMs: Number(endsAtMicros) / 1000 } };
}

/** The clock decides when the next secret takes over, not whoever tidies up behind it. */
export function secretsAt(
  { current, rotation }: RotatingSecret,
  nowMs: number,
  decrypt: (ciphertext: string) => string,
): SigningSecrets {
  if (rotation === null) return [decrypt(current)];
  const next = decrypt(rotation.next);
  return nowMs < rotation.endsAtMs ? [decrypt(current), next] : [next];
}

/** Every header of a delivery, for the dispatcher and for the test endpoint alike. */
export function deliveryHeaders(delivery: {
  body: string;
  eventId: string;
  hmacSecrets: SigningSecrets;
  sentAt: Date;
  /** Null or left out: `Authorization`. */
  signatureHeader?: string | null;
  /** Of the subscriber's own. */
  ownHeaders?: Readonly<Record<string, string>>;
}): Record<string, string> {
  const { body, eventId, hmacSecrets, sentAt, signatureHeader, ownHeaders = {} } = delivery;
  const headers: Record<string, string> = {};
  // First: whatever they are called, nothing of ours gives way to them.
  for (const [name, value] of Object.entries(ownHeaders)) headers[name.toLowerCase()] = value;
  return {
    ...headers,
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    [(signatureHeader ?? SIGNATURE_HEADER).toLowerCase()]: sign(body, hmacSecrets[0]),
    ...standardWebhooksHeaders(eventId, Math.floor(sentAt.getTime() / 1000), body, hmacSecrets),
  };
}

const USER_AGENT = 'Runhook/0.1.0';

/**
 * The value of a delivery's `Authorization` header, or of the one that its subscription names: the lowercase hex
 * HMAC-SHA256 of the exact body, keyed with the whole text of `hmac_secret` (docs/contract.md#signing). A string is signed
 * as its UTF-8 bytes.
 */
export function sign(body: string | Buffer, hmacSecret: string): string {
  return createHmac('sha256', hmacSecret).update(body).digest('hex');
}

/**
 * The three headers of the Standard Webhooks scheme, which receivers with those libraries use for replay
 * protection. Their key is the base64 part of the secret, decoded, as those libraries hold it; with two secrets there are
 * two signatures, either of which is enough for them.
 * @param timestampSeconds seconds since the epoch at which this attempt is signed
 */
export function standardWebhooksHeaders(
  eventId: string,
  timestampSeconds: number,
  body: string,
  hmacSecrets: SigningSecrets,
): { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string } {
  const signatures = hmacSecrets.map((hmacSecret) => {
    const key = Buffer.from(hmacSecret.slice(SECRET_PREFIX.length), 'base64');
    const signed = createHmac('sha256', key).update(`${eventId}.${timestampSeconds}.`).update(body);
    return `v1,${signed.digest('base64')}`;
  });
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}

const SECRET_PREFIX = 'whsec_';

/** What {@link createHmacSecret} makes. */
export const HMAC_SECRET_PATTERN = /^whsec_[0-9A-Za-z+/]{43}=$/;

/** A new `hmac_secret`: `whsec_` and 32 random bytes in base64. */
export function createHmacSecret(): string {
  return `${SECRET_PREFIX}${randomBytes(32).toString('base64')}`;
}

/**
 * Whether `authorization` is the signature of the raw body, compared in constant time. False for anything that is
 * not 64 lowercase hex digits, undefined included.
 */
export function verify(
  body: string | Buffer,
  hmacSecret: string,
  authorization: string | undefined,
): boolean {
  if (typeof authorization !== 'string' || !/^[0-9a-f]{64}$/.test(authorization)) return false;
  return timingSafeEqual(Buffer.from(sign(body, hmacSecret)), Buffer.from(authorization));
}
