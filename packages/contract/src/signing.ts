import { randomBytes } from 'node:crypto';
import {
  SECRET_PREFIX,
  SIGNATURE_HEADER,
  type SigningSecrets,
  sign,
  standardWebhooksHeaders,
} from './signatures.ts';

/** A subscription's secret, and the rotation that is under way or has just ended; encrypted. */
export interface RotatingSecret {
  current: string;
  rotation: {
    next: string;
    /** Milliseconds since the epoch. */
    endsAtMs: number;
  } | null;
}

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

/** What {@link createHmacSecret} makes. */
export const HMAC_SECRET_PATTERN = /^whsec_[0-9A-Za-z+/]{43}=$/;

/** A new `hmac_secret`: `whsec_` and 32 random bytes in base64. */
export function createHmacSecret(): string {
  return `${SECRET_PREFIX}${randomBytes(32).toString('base64')}`;
}
