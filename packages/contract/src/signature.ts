import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The value of a delivery's `Authorization` header: the lowercase hex HMAC-SHA256 of the exact body, keyed with
 * the whole text of `hmac_secret` (spec, section 5.3). A string is signed as its UTF-8 bytes.
 */
export function sign(body: string | Buffer, hmacSecret: string): string {
  return createHmac('sha256', hmacSecret).update(body).digest('hex');
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
