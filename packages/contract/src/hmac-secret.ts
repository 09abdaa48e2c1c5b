import { randomBytes } from 'node:crypto';

/** A new `hmac_secret`: `whsec_` and 32 random bytes in base64. */
export function createHmacSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}
