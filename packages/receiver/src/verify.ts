import { timingSafeEqual } from 'node:crypto';
import type { DeliveryPayload } from '@runhook/contract/events';
import {
  PUBLIC_KEY_PATTERN,
  standardWebhooksSignature,
  verify as verifyAuthorization,
  verifyEd25519,
} from '@runhook/contract/signatures';

/** The body of a delivery. `eventType` determines the timestamp in its `data`. */
export type JobRunEvent = DeliveryPayload;

/** Headers of Node.js or of a `Request`. */
export type DeliveryHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** The webhook's `hmac_secret`. During a rotation: the old and the new one, in any order. */
  secrets?: string | readonly string[];
  /**
   * Instead of `secrets`: the public keys of the webhook's `signature_key`, `whpk_…`. Only Ed25519 signatures are then
   * accepted, which only the service can make.
   */
  publicKeys?: string | readonly string[];
  /**
   * The signature that is verified. `standard-webhooks`, the default, is in the `webhook-` headers: it covers the time
   * of the attempt, so that a recorded request cannot be replayed later, and there is one per secret during a rotation.
   * `authorization` covers only the body.
   */
  scheme?: 'standard-webhooks' | 'authorization';
  /** For `authorization`: the webhook's `signature_header`; default `Authorization`. */
  signatureHeader?: string;
  /**
   * For `standard-webhooks`: maximum difference between the time of the attempt and the local clock, in both
   * directions; default 300.
   */
  toleranceSeconds?: number;
  /** Returns milliseconds since the epoch; default: the system clock. */
  now?: () => number;
}

const REJECTIONS = {
  no_signature: { status: 401, message: 'The request has no signature.' },
  wrong_signature: {
    status: 401,
    message: 'The signature does not match the body with any of the secrets or public keys.',
  },
  too_old: { status: 401, message: 'The request was signed too long ago.' },
  too_new: { status: 401, message: 'The request was signed in the future.' },
  invalid_event: { status: 400, message: 'The body is not an event.' },
  too_large: { status: 413, message: 'The body is too large.' },
} as const;

/** The request is not a genuine delivery; `status` is the status to respond with. */
export class InvalidDeliveryError extends Error {
  override readonly name = 'InvalidDeliveryError';
  readonly code: keyof typeof REJECTIONS;
  readonly status: number;

  constructor(code: keyof typeof REJECTIONS) {
    super(REJECTIONS[code].message);
    this.code = code;
    this.status = REJECTIONS[code].status;
  }
}

const TOLERANCE_SECONDS = 300;

/**
 * Returns the event of a delivery if it is genuine (docs/contract.md#signing).
 * @param body exactly as received: JSON that was parsed and serialized again differs
 * @throws {InvalidDeliveryError} if it is not genuine; `TypeError` for options or a body for which no request could be valid
 */
export function verify(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  options: VerifyOptions,
): JobRunEvent {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) throw new TypeError(PARSED_BODY_MESSAGE);
  const keys = keysOf(options);
  const rejection =
    options.scheme === 'authorization'
      ? checkAuthorization(body, headers, keys.secrets, options)
      : checkStandardWebhooks(body, headers, keys, options);
  if (rejection !== null) throw new InvalidDeliveryError(rejection);
  return eventOf(body);
}

/** Message for the developer of the receiver, not for its callers. */
export const PARSED_BODY_MESSAGE =
  'The body was parsed before its signature could be checked. Verify its bytes: put the webhook before ' +
  "express.json(), or express.raw({ type: '*/*' }) on its route.";

interface Keys {
  secrets: readonly string[];
  /** Empty if `secrets` is not. */
  publicKeys: readonly string[];
}

/**
 * @throws TypeError if there is no secret, or one is not `whsec_` followed by at least one character; for `publicKeys`,
 * if one is not a public key, or another option requires a secret
 */
export function keysOf({ secrets, publicKeys, scheme }: VerifyOptions): Keys {
  if (publicKeys !== undefined) {
    const list = typeof publicKeys === 'string' ? [publicKeys] : publicKeys;
    if (list.length === 0 || list.some((key) => typeof key !== 'string' || !PUBLIC_KEY_PATTERN.test(key)))
      throw new TypeError(
        'publicKeys must be a public key of the webhook, whpk_ included, or several of them',
      );
    if (secrets !== undefined || scheme === 'authorization')
      throw new TypeError('publicKeys replaces secrets, and verifies the scheme standard-webhooks only');
    return { secrets: [], publicKeys: list };
  }
  const list = typeof secrets === 'string' ? [secrets] : (secrets ?? []);
  if (list.length === 0 || list.some((secret) => typeof secret !== 'string' || !/^whsec_./.test(secret)))
    throw new TypeError(
      'secrets must be the hmac_secret of the webhook, whsec_ included, or several of them',
    );
  return { secrets: list, publicKeys: [] };
}

type RejectionCode = keyof typeof REJECTIONS | null;

function checkAuthorization(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  secrets: readonly string[],
  { signatureHeader = 'Authorization' }: VerifyOptions,
): RejectionCode {
  const signature = headerOf(headers, signatureHeader);
  if (signature === undefined) return 'no_signature';
  return secrets.some((secret) => verifyAuthorization(body, secret, signature)) ? null : 'wrong_signature';
}

function checkStandardWebhooks(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  { secrets, publicKeys }: Keys,
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now }: VerifyOptions,
): RejectionCode {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    headerOf(headers, name),
  );
  if (id === undefined || timestamp === undefined || signatures === undefined) return 'no_signature';
  const candidates = signatures.split(' ');
  const isSigned =
    secrets.some((secret) => {
      const expected = Buffer.from(standardWebhooksSignature(id, timestamp, body, secret));
      return candidates.some((text) => isEqual(Buffer.from(text), expected));
    }) || isSignedByKey(publicKeys, candidates, (key, text) => verifyEd25519(id, timestamp, body, key, text));
  if (!isSigned) return 'wrong_signature';
  const ageSeconds = now() / 1000 - Number(timestamp);
  if (Number.isNaN(ageSeconds) || ageSeconds > toleranceSeconds) return 'too_old';
  return ageSeconds < -toleranceSeconds ? 'too_new' : null;
}

function isEqual(received: Uint8Array, expected: Uint8Array): boolean {
  return received.length === expected.length && timingSafeEqual(received, expected);
}

/** A delivery has two at most. The limit bounds the work that a request of anyone causes. */
const ED25519_SIGNATURES_MAX = 8;

function isSignedByKey(
  publicKeys: readonly string[],
  candidates: readonly string[],
  isSignature: (publicKey: string, candidate: string) => boolean,
): boolean {
  if (publicKeys.length === 0) return false;
  const signatures = candidates.filter((text) => text.startsWith('v1a,')).slice(0, ED25519_SIGNATURES_MAX);
  return publicKeys.some((key) => signatures.some((text) => isSignature(key, text)));
}

/** Returns the value of a header; undefined if there is none, or an array of more than one. */
function headerOf(headers: DeliveryHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined;
  const lower = name.toLowerCase();
  const entries = headers as Readonly<Record<string, string | readonly string[] | undefined>>;
  const matchingKey = Object.keys(entries).find((key) => key.toLowerCase() === lower);
  const value = matchingKey === undefined ? undefined : entries[matchingKey];
  return typeof value === 'object' ? (value.length === 1 ? value[0] : undefined) : value;
}

function eventOf(body: string | Uint8Array): JobRunEvent {
  try {
    const event = JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body));
    if (typeof event.eventType === 'string' && typeof event.data === 'object') return event;
  } catch {
    // Rejected below, like JSON that is not an event.
  }
  throw new InvalidDeliveryError('invalid_event');
}
