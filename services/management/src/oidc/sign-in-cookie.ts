import { type SecretBox, SecretBoxError } from '@runhook/database';
import Joi from 'joi';
import { type CookieProtection, cookieAttributes } from '../sessions/cookie-protection.ts';

/** The values of one sign-in, which the browser returns with the response of the provider. */
export interface SignInFlow {
  state: string;
  nonce: string;
  /** PKCE code verifier. */
  verifier: string;
  /** Path to open in the console, with a leading slash. */
  next: string;
}

/**
 * Keeps the values of a sign-in in the browser, encrypted, so that starting one costs no row and any process can
 * complete it. `Lax`, because the provider's redirect is a navigation from another site, which carries no `Strict`
 * cookie.
 */
export interface SignInCookie {
  /** Returns the `Set-Cookie` of a sign-in that has begun. */
  issue(flow: SignInFlow): string;
  /** Returns null if there is none, or it has expired. @param header `Cookie` header of the request */
  read(header: string | undefined): SignInFlow | null;
  /** Returns the `Set-Cookie` that removes the cookie. */
  remove(): string;
}

const SECONDS = 600;

const schema = Joi.object<SignInFlow & { purpose: string; expiresAtMs: number }>({
  // Ciphertexts of other values under the same key are rejected.
  purpose: Joi.valid('oidc sign-in').required(),
  state: Joi.string().required(),
  nonce: Joi.string().required(),
  verifier: Joi.string().required(),
  next: Joi.string().required(),
  expiresAtMs: Joi.number().required(),
});

export function createSignInCookie(
  secrets: SecretBox,
  protection: CookieProtection,
  nowMs: () => number = Date.now,
): SignInCookie {
  const name = `${protection.prefix}runhook_oidc`;
  const attributes = cookieAttributes(protection, 'Lax');
  return {
    issue(flow) {
      const content = { purpose: 'oidc sign-in', ...flow, expiresAtMs: nowMs() + SECONDS * 1_000 };
      const value = secrets.encrypt(JSON.stringify(content));
      return `${name}=${value}; Max-Age=${SECONDS}; ${attributes}`;
    },
    read(header) {
      // Not without the prefix: another host of the domain could set that cookie, with another sign-in.
      const pair = (header ?? '').split(';').find((part) => part.trim().startsWith(`${name}=`));
      const { value, error } = schema.validate(decrypt(secrets, pair?.trim().slice(name.length + 1) ?? ''));
      if (error || value.expiresAtMs <= nowMs()) return null;
      const { state, nonce, verifier, next } = value;
      return { state, nonce, verifier, next };
    },
    remove: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}

function decrypt(secrets: SecretBox, value: string): unknown {
  try {
    return JSON.parse(secrets.decrypt(value));
  } catch (error) {
    if (error instanceof SecretBoxError || error instanceof SyntaxError) return null;
    throw error;
  }
}

const NEXT_CHARACTERS_MAX = 1_000;

/** Returns `next` if it is a path below the console's root, otherwise `/`: nothing may redirect to another host. */
export function safeNext(next: string | undefined): string {
  const isPath = next !== undefined && /^\/(?![/\\])[\x21-\x7e]*$/.test(next) && !next.includes('\\');
  return isPath && next.length <= NEXT_CHARACTERS_MAX ? next : '/';
}
