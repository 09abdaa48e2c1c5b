import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Whether a delivery is genuine: its `Authorization` header, or the one that the webhook names, must be the lowercase
 * hex HMAC-SHA256 of the body, keyed with the subscription's `hmac_secret`.
 *
 * @param {Buffer} body the bytes exactly as received; JSON that was parsed and serialized again may differ
 * @param {string | undefined} signature
 * @param {string} secret
 */
export function isGenuine(body, signature, secret) {
  const expected = Buffer.from(createHmac('sha256', secret).update(body).digest('hex'));
  const received = Buffer.from(signature ?? '');
  // timingSafeEqual requires equal lengths. Its duration does not reveal how much of a guess was correct.
  return received.length === expected.length && timingSafeEqual(received, expected);
}
