import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { EncryptionKey } from '@runhook/database';
import { type CookieProtection, cookieAttributes, cookieValues } from './cookie-protection.ts';

/** A browser in which a user has signed in before. */
export interface RecognizedDevice {
  /** Random id of this browser for this user. Known only to owners of the cookie. */
  id: string;
}

/**
 * Recognizes browsers in which a user has signed in, by a cookie, so that failed sign-ins of others cannot lock the
 * user out. The cookie does not authenticate: it only gives the browser a separate limit of attempts.
 */
export interface DeviceCookies {
  /** @param header `Cookie` header of the request; @param email in lower case */
  find(header: string | undefined, email: string): RecognizedDevice | null;
  /** Returns the `Set-Cookie` that adds the e-mail address to those that the browser is recognized for. */
  issue(header: string | undefined, email: string, protection: CookieProtection): string;
}

export const DEVICE_COOKIE = 'runhook_device';
const COOKIE_SECONDS = 180 * 86_400;
/** Maximum number of users of one browser; the least recently signed-in user is dropped first. */
const USERS_MAX = 4;
const ID_BYTES = 16;
/** Matches a token: name of the key, id of the device, expiry in seconds since the epoch, MAC. */
const TOKEN = /^([\w-]+)\.([\w-]{22})\.(\d{1,12})\.([\w-]{43})$/;

/**
 * Signs with a key derived from the newest encryption key, and accepts signatures of all keys: a cookie remains valid
 * after a rotation until its key is removed from `ENCRYPTION_KEYS`, and each sign-in renews it.
 */
export function createDeviceCookies(
  keys: readonly EncryptionKey[],
  nowMs: () => number = Date.now,
): DeviceCookies {
  const newestName = keys[0]?.name ?? '';
  const signingKeys = new Map(keys.map(({ name, key }) => [name, signingKey(key)]));

  function sign(keyName: string, id: string, expiry: string, email: string): Buffer | null {
    const key = signingKeys.get(keyName);
    return key === undefined ? null : createHmac('sha256', key).update(`${id}.${expiry}.${email}`).digest();
  }

  function verify(token: string, email: string): RecognizedDevice | null {
    const [, keyName = '', id = '', expiry = '', mac = ''] = TOKEN.exec(token) ?? [];
    const expectedMac = sign(keyName, id, expiry, email);
    if (expectedMac === null || Number(expiry) * 1_000 <= nowMs()) return null;
    const suppliedMac = Buffer.from(mac, 'base64url');
    return suppliedMac.length === expectedMac.length && timingSafeEqual(suppliedMac, expectedMac)
      ? { id }
      : null;
  }

  const find: DeviceCookies['find'] = (header, email) =>
    tokensOf(header).reduce<RecognizedDevice | null>((device, token) => device ?? verify(token, email), null);

  return {
    find,
    issue(header, email, protection) {
      const id = find(header, email)?.id ?? randomBytes(ID_BYTES).toString('base64url');
      const expiry = String(Math.floor(nowMs() / 1_000) + COOKIE_SECONDS);
      const mac = sign(newestName, id, expiry, email)?.toString('base64url');
      const others = tokensOf(header).filter((token) => verify(token, email) === null);
      const tokens = [`${newestName}.${id}.${expiry}.${mac}`, ...others].slice(0, USERS_MAX);
      const cookie = `${protection.prefix}${DEVICE_COOKIE}=${tokens.join('~')}`;
      return `${cookie}; Max-Age=${COOKIE_SECONDS}; ${cookieAttributes(protection)}`;
    },
  };
}

function signingKey(encryptionKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', encryptionKey, '', 'runhook known devices', 32));
}

/** Returns well-formed tokens of the cookie, up to the maximum. */
function tokensOf(header: string | undefined): string[] {
  const [value = ''] = cookieValues(header, DEVICE_COOKIE);
  return value
    .split('~')
    .slice(0, USERS_MAX)
    .filter((token) => TOKEN.test(token));
}
