import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { EncryptionKey } from '@runhook/database';

/** A browser in which a user has signed in before. */
export interface KnownDevice {
  /** Identifies the device. Known only to owners of the cookie. */
  id: string;
}

/**
 * Recognizes browsers in which a user has signed in, by a cookie, so that failed sign-ins of others cannot lock the
 * user out. The cookie does not authenticate: it only has a separate limit of attempts.
 */
export interface KnownDevices {
  /** @param header `Cookie` header of the request; @param email in lower case */
  find(header: string | undefined, email: string): KnownDevice | null;
  /** Returns the `Set-Cookie` that adds the e-mail address to those that the browser is recognized for. */
  remember(header: string | undefined, email: string, secure: boolean): string;
}

const COOKIE = 'runhook_device';
const KNOWN_SECONDS = 180 * 86_400;
/** Maximum number of users of one browser; the least recently signed-in user is dropped first. */
const USERS_MAX = 4;
const ID_BYTES = 16;
/** Key name, id, expiry in seconds since the epoch, MAC. */
const TOKEN = /^([\w-]+)\.([\w-]{22})\.(\d{1,12})\.([\w-]{43})$/;

/**
 * Signs with a key derived from the newest encryption key, and accepts signatures of all keys: a cookie remains valid
 * after a rotation until its key is removed from `ENCRYPTION_KEYS`, and each sign-in renews it.
 */
export function createKnownDevices(
  keys: readonly EncryptionKey[],
  nowMs: () => number = Date.now,
): KnownDevices {
  const newestName = keys[0]?.name ?? '';
  const signingKeys = new Map(keys.map(({ name, key }) => [name, signingKey(key)]));

  function sign(keyName: string, id: string, end: string, email: string): Buffer | null {
    const key = signingKeys.get(keyName);
    return key === undefined ? null : createHmac('sha256', key).update(`${id}.${end}.${email}`).digest();
  }

  function verified(token: string, email: string): KnownDevice | null {
    const [, keyName = '', id = '', end = '', mac = ''] = TOKEN.exec(token) ?? [];
    const expected = sign(keyName, id, end, email);
    if (expected === null || Number(end) * 1_000 <= nowMs()) return null;
    const given = Buffer.from(mac, 'base64url');
    return given.length === expected.length && timingSafeEqual(given, expected) ? { id } : null;
  }

  const find: KnownDevices['find'] = (header, email) =>
    tokensOf(header).reduce<KnownDevice | null>((found, token) => found ?? verified(token, email), null);

  return {
    find,
    remember(header, email, secure) {
      const id = find(header, email)?.id ?? randomBytes(ID_BYTES).toString('base64url');
      const end = String(Math.floor(nowMs() / 1_000) + KNOWN_SECONDS);
      const mac = sign(newestName, id, end, email)?.toString('base64url');
      const others = tokensOf(header).filter((token) => verified(token, email) === null);
      const tokens = [`${newestName}.${id}.${end}.${mac}`, ...others].slice(0, USERS_MAX);
      const attributes = `Path=/; Max-Age=${KNOWN_SECONDS}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
      return `${COOKIE}=${tokens.join('~')}; ${attributes}`;
    },
  };
}

function signingKey(encryptionKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', encryptionKey, '', 'runhook known devices', 32));
}

/** Returns well-formed tokens of the cookie, up to the maximum. */
function tokensOf(header: string | undefined): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const value = pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? '';
  return value
    .split('~')
    .slice(0, USERS_MAX)
    .filter((token) => TOKEN.test(token));
}
