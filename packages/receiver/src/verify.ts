import { timingSafeEqual } from 'node:crypto';
import type { DeliveryPayload } from '@runhook/contract/events';
import { standardWebhooksSignature, verify as verifyAuthorization } from '@runhook/contract/signatures';

/** The body of a delivery. `eventType` says which time its `data` carries. */
export type JobRunEvent = DeliveryPayload;

/** Headers as Node.js has them, or as `Request` has them. */
export type DeliveryHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** The webhook's `hmac_secret`. While it is rotated: the old and the new one, in any order. */
  secrets: string | readonly string[];
  /**
   * Which signature must be right. `standard-webhooks`, the default, is that of the `webhook-` headers: it covers the time
   * of the attempt, so that what somebody has recorded cannot be sent again later, and it carries both signatures during a
   * rotation. `authorization` covers the body alone.
   */
  scheme?: 'standard-webhooks' | 'authorization';
  /** For `authorization`: the webhook's `signature_header`, where it names another one. */
  signatureHeader?: string;
  /** For `standard-webhooks`: how far the time of the attempt may be from the clock here, both ways; 300 when omitted. */
  toleranceSeconds?: number;
  /** Milliseconds since the epoch; the clock when omitted. */
  now?: () => number;
}

const REFUSALS = {
  no_signature: { status: 401, message: 'The request has no signature.' },
  wrong_signature: { status: 401, message: 'The signature does not fit the body and any of the secrets.' },
  too_old: { status: 401, message: 'The request was signed too long ago.' },
  too_new: { status: 401, message: 'The request was signed in the future.' },
  not_an_event: { status: 400, message: 'The body is no event.' },
  too_large: { status: 413, message: 'The body is too large.' },
} as const;

/** A request that is not a delivery, or not a genuine one; `status` is what to answer. */
export class RefusedDelivery extends Error {
  override readonly name = 'RefusedDelivery';
  readonly code: keyof typeof REFUSALS;
  readonly status: number;

  constructor(code: keyof typeof REFUSALS) {
    super(REFUSALS[code].message);
    this.code = code;
    this.status = REFUSALS[code].status;
  }
}

const TOLERANCE_SECONDS = 300;

/**
 * The event of a delivery, if it is genuine (docs/contract.md#signing).
 * @param body exactly as it arrived: JSON that was parsed and written again is another body
 * @throws {RefusedDelivery} when it is not; `TypeError` for options or a body that no request could be right with
 */
export function verify(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  options: VerifyOptions,
): JobRunEvent {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) throw new TypeError(PARSED);
  const secrets = secretsOf(options);
  const refusal =
    options.scheme === 'authorization'
      ? authorizationRefusal(body, headers, secrets, options)
      : standardWebhooksRefusal(body, headers, secrets, options);
  if (refusal !== null) throw new RefusedDelivery(refusal);
  return eventOf(body);
}

/** Said to whoever wrote the receiver, not to whoever called it. */
export const PARSED =
  'The body was parsed before its signature could be checked. Verify its bytes: put the webhook before ' +
  "express.json(), or express.raw({ type: '*/*' }) on its route.";

/** @throws TypeError where there are none, or one is not the whole text of an `hmac_secret` */
export function secretsOf({ secrets }: VerifyOptions): readonly string[] {
  const list = typeof secrets === 'string' ? [secrets] : (secrets ?? []);
  if (list.length === 0 || list.some((secret) => typeof secret !== 'string' || !/^whsec_./.test(secret)))
    throw new TypeError(
      'secrets must be the hmac_secret of the webhook, whsec_ included, or several of them',
    );
  return list;
}

type Refusal = keyof typeof REFUSALS | null;

function authorizationRefusal(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  secrets: readonly string[],
  { signatureHeader = 'Authorization' }: VerifyOptions,
): Refusal {
  const given = headerOf(headers, signatureHeader);
  if (given === undefined) return 'no_signature';
  return secrets.some((secret) => verifyAuthorization(body, secret, given)) ? null : 'wrong_signature';
}

function standardWebhooksRefusal(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  secrets: readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now }: VerifyOptions,
): Refusal {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    headerOf(headers, name),
  );
  if (id === undefined || timestamp === undefined || signatures === undefined) return 'no_signature';
  const given = signatures.split(' ').map((text) => Buffer.from(text));
  const isSigned = secrets.some((secret) => {
    const expected = Buffer.from(standardWebhooksSignature(id, timestamp, body, secret));
    return given.some((text) => text.length === expected.length && timingSafeEqual(text, expected));
  });
  if (!isSigned) return 'wrong_signature';
  const ageSeconds = now() / 1000 - Number(timestamp);
  if (Number.isNaN(ageSeconds) || ageSeconds > toleranceSeconds) return 'too_old';
  return ageSeconds < -toleranceSeconds ? 'too_new' : null;
}

/** The one value of a header; undefined when there is none, or more than one. */
function headerOf(headers: DeliveryHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined;
  const lower = name.toLowerCase();
  const entries = headers as Readonly<Record<string, string | readonly string[] | undefined>>;
  const found = Object.keys(entries).find((key) => key.toLowerCase() === lower);
  const value = found === undefined ? undefined : entries[found];
  return typeof value === 'object' ? (value.length === 1 ? value[0] : undefined) : value;
}

function eventOf(body: string | Uint8Array): JobRunEvent {
  try {
    const event = JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body));
    if (typeof event.eventType === 'string' && typeof event.data === 'object') return event;
  } catch {
    // Refused below, like what is JSON and no event.
  }
  throw new RefusedDelivery('not_an_event');
}
