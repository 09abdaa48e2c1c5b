import { hashCredential } from '@runhook/database';
import type { Caller, VersionedPrincipal } from '../identity/principals.ts';
import { sessionIdOf } from '../sessions/console-sessions.ts';
import { InvalidTokenError } from './errors.ts';

export interface Authentication {
  /**
   * Finds the principal of an API key or service token; null if there is none.
   * @param isVersionChecked whether a cached result is permitted, because the request's statement checks its version
   */
  findPrincipal(credential: string, isVersionChecked: boolean): Promise<VersionedPrincipal | null>;
  /** Finds the caller whose console session the cookie contains; null if there is none. */
  findSession(sessionId: string): Promise<Caller | null>;
}

const CREDENTIAL = /^(?:token|bearer) +(\S+)$/i;

/**
 * Returns the caller of `Authorization: Token <key>` or `Bearer <key>`, which are equivalent, or, without that header,
 * of the console's cookie. Throws the same {@link InvalidTokenError} for missing, malformed, unknown, revoked and
 * expired credentials.
 */
export async function authenticate(
  headers: { authorization: string | undefined; cookie: string | undefined },
  { findPrincipal, findSession }: Authentication,
  isVersionChecked = false,
): Promise<Caller> {
  const caller =
    headers.authorization === undefined
      ? await callerByCookie(headers.cookie, findSession)
      : await callerByKey(headers.authorization, (credential) => findPrincipal(credential, isVersionChecked));
  if (!caller) throw new InvalidTokenError();
  return caller;
}

async function callerByKey(
  authorization: string,
  find: (credential: string) => Promise<VersionedPrincipal | null>,
): Promise<Caller | null> {
  const credential = CREDENTIAL.exec(authorization)?.[1];
  const versioned = credential === undefined ? null : await find(credential);
  if (credential === undefined || !versioned) return null;
  const { principal, version } = versioned;
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
 * Whether the browser confirms that the request comes from a page of this host. Browsers set `Sec-Fetch-Site`, and no
 * page can. If it is missing, as over plain http, `Origin` must name the host of the request.
 * @param host host of the request, with its port unless that is the scheme's default
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
  // Compares only the hosts with their ports, because the scheme is not reliable behind a proxy that terminates TLS.
  const ownUrl = `${protocol}//${host}`;
  return URL.canParse(ownUrl) && new URL(ownUrl).host === originHost;
}
