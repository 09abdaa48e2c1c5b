import { hashCredential } from '@runhook/database';
import type { Caller, Principal } from '../domain/principal.ts';
import { InvalidTokenError } from './errors.ts';
import { sessionIdOf } from './session-cookie.ts';

export interface Authentication {
  /** Finds who holds an API key or service token; null when nobody does. */
  findPrincipal(credential: string): Promise<Principal | null>;
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
): Promise<Caller> {
  const caller =
    headers.authorization === undefined
      ? await callerByCookie(headers.cookie, findSession)
      : await callerByKey(headers.authorization, findPrincipal);
  if (!caller) throw new InvalidTokenError();
  return caller;
}

async function callerByKey(
  authorization: string,
  find: Authentication['findPrincipal'],
): Promise<Caller | null> {
  const credential = CREDENTIAL.exec(authorization)?.[1];
  const principal = credential === undefined ? null : await find(credential);
  if (credential === undefined || !principal) return null;
  return { principal, credential: { kind: 'key', hash: hashCredential(credential) } };
}

async function callerByCookie(
  cookie: string | undefined,
  find: Authentication['findSession'],
): Promise<Caller | null> {
  const sessionId = sessionIdOf(cookie);
  return sessionId === null ? null : await find(sessionId);
}
