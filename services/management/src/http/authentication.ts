import { hashCredential } from '@runhook/database';
import type { Caller, KnownPrincipal } from '../identity/principals.ts';
import { sessionIdOf } from '../sessions/console-sessions.ts';
import { InvalidTokenError } from './errors.ts';

export interface Authentication {
  /**
   * Finds who holds an API key or service token; null when nobody does.
   * @param isChecked the version of what is remembered is checked by whoever writes: the answer may be from memory
   */
  findPrincipal(credential: string, isChecked: boolean): Promise<KnownPrincipal | null>;
  /** Finds whose console session the cookie holds; null when it is nobody's. */
  findSession(sessionId: string): Promise<Caller | null>;
}

const CREDENTIAL = /^(?:token|bearer) +(\S+)$/i;

/**
 * The caller behind `Authorization: Token <key>` or `Bearer <key>`, which are equal; without that header, behind the
 * console's cookie. Throws {@link InvalidTokenError} for whatever is missing, malformed, unknown, revoked or expired,
 * alike.
 */
export async function authenticate(
  headers: { authorization: string | undefined; cookie: string | undefined },
  { findPrincipal, findSession }: Authentication,
  isChecked = false,
): Promise<Caller> {
  const caller =
    headers.authorization === undefined
      ? await callerByCookie(headers.cookie, findSession)
      : await callerByKey(headers.authorization, (credential) => findPrincipal(credential, isChecked));
  if (!caller) throw new InvalidTokenError();
  return caller;
}

async function callerByKey(
  authorization: string,
  find: (credential: string) => Promise<KnownPrincipal | null>,
): Promise<Caller | null> {
  const credential = CREDENTIAL.exec(authorization)?.[1];
  const known = credential === undefined ? null : await find(credential);
  if (credential === undefined || !known) return null;
  const { principal, version } = known;
  return { principal, version, credential: { kind: 'key', hash: hashCredential(credential) } };
}

async function callerByCookie(
  cookie: string | undefined,
  find: Authentication['findSession'],
): Promise<Caller | null> {
  const sessionId = sessionIdOf(cookie);
  return sessionId === null ? null : await find(sessionId);
}

/**
 * Whether a browser vouches that the request comes from a page of this very host. `Sec-Fetch-Site` is the browser's
 * own word, and no page can set it; where it is missing, on plain http, `Origin` must name the host of the request.
 * @param host the request's own, with its port unless that is the scheme's default
 */
export function isSameOrigin(request: {
  secFetchSite: string | undefined;
  origin: string | undefined;
  host: string | undefined;
}): boolean {
  const { secFetchSite, origin, host } = request;
  if (secFetchSite !== undefined) return secFetchSite === 'same-origin';
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: originHost } = new URL(origin);
  // Behind a proxy that ends TLS the scheme is not known for sure, so only the hosts are compared, port included.
  const ownUrl = `${protocol}//${host}`;
  return URL.canParse(ownUrl) && new URL(ownUrl).host === originHost;
}
