import type { Principal } from '../domain/principal.ts';
import { InvalidTokenError } from './errors.ts';

/** Finds who holds a credential; null when nobody does. */
export type FindPrincipal = (credential: string) => Promise<Principal | null>;

const CREDENTIAL = /^(?:token|bearer) +(\S+)$/i;

/**
 * The caller behind `Authorization: Token <key>` or `Bearer <key>`, which are equal.
 * Throws {@link InvalidTokenError} for whatever is missing, malformed, unknown, revoked or expired, alike.
 */
export async function authenticate(
  authorization: string | undefined,
  find: FindPrincipal,
): Promise<Principal> {
  const credential = CREDENTIAL.exec(authorization ?? '')?.[1];
  const principal = credential === undefined ? null : await find(credential);
  if (!principal) throw new InvalidTokenError();
  return principal;
}
