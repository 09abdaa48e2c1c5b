import { randomBytes } from 'node:crypto';
import {
  SECRET_PREFIX,
  SIGNATURE_HEADER,
  type SigningSecrets,
  sign,
  standardWebhooksHeaders,
} from './signatures.ts';

/** A subscription's secret or private key, and a rotation that is in progress or has just ended; encrypted. */
export interface RotatingSecret {
  current: string;
  rotation: {
    next: string;
    /** Milliseconds since the epoch. */
    endsAtMs: number;
  } | null;
}

/** Converts the columns of a subscription. @param endsAtMicros since the epoch; ignored if `next` is null */
export function rotatingSecret(
  current: string,
  next: string | null,
  endsAtMicros: string | bigint | null,
): RotatingSecret {
  return { current, rotation: next === null ? null : { next, endsAtMs: Number(endsAtMicros) / 1000 } };
}

/**
 * Returns the secrets that are valid at `nowMs`. The clock decides, so the result is right even if maintenance has not
 * yet replaced the old secret.
 */
export function secretsAt(
  { current, rotation }: RotatingSecret,
  nowMs: number,
  decrypt: (ciphertext: string) => string,
): SigningSecrets {
  if (rotation === null) return [decrypt(current)];
  const next = decrypt(rotation.next);
  return nowMs < rotation.endsAtMs ? [decrypt(current), next] : [next];
}

/** Returns the headers of a delivery except `traceparent`. Used by the dispatcher and by the test of an endpoint. */
export function deliveryHeaders(delivery: {
  body: string;
  eventId: string;
  hmacSecrets: SigningSecrets;
  /** Ed25519 keys, `whsk_…`; null or undefined if the webhook has none. */
  privateKeys?: readonly string[] | null;
  sentAt: Date;
  /** Null or undefined: that of the format. */
  signatureHeader?: string | null;
  /** That of a format (`Format.signatureHeader`); null for none. Default: `Authorization`. */
  formatSignatureHeader?: string | null;
  /** Default: `application/json`. */
  contentType?: string;
  /** Custom headers of the subscription. */
  customHeaders?: Readonly<Record<string, string>>;
}): Record<string, string> {
  const { body, eventId, hmacSecrets, privateKeys, sentAt, customHeaders = {} } = delivery;
  const { formatSignatureHeader = SIGNATURE_HEADER, contentType = 'application/json' } = delivery;
  const signatureHeader = delivery.signatureHeader ?? formatSignatureHeader;
  const sentAtSeconds = Math.floor(sentAt.getTime() / 1000);
  const headers: Record<string, string> = {};
  // Custom headers come first, so that Runhook's headers override them whatever their names are.
  for (const [name, value] of Object.entries(customHeaders)) headers[name.toLowerCase()] = value;
  return {
    ...headers,
    'content-type': contentType,
    'user-agent': USER_AGENT,
    ...(signatureHeader !== null && { [signatureHeader.toLowerCase()]: sign(body, hmacSecrets[0]) }),
    ...standardWebhooksHeaders(eventId, sentAtSeconds, body, hmacSecrets, privateKeys ?? []),
  };
}

const USER_AGENT = 'Runhook/0.1.0';

/** Matches a secret made by {@link createHmacSecret}. */
export const HMAC_SECRET_PATTERN = /^whsec_[0-9A-Za-z+/]{43}=$/;

/** Returns a new `hmac_secret`: `whsec_` and 32 random bytes in base64. */
export function createHmacSecret(): string {
  return `${SECRET_PREFIX}${randomBytes(32).toString('base64')}`;
}
