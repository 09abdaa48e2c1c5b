import type { Principal, UserPrincipal } from '../domain/principal.ts';
import { AccessDeniedError } from './errors.ts';

/** The calling user; a 403 for a service token, which is nobody. */
export function requiredUser(principal: Principal): UserPrincipal {
  if (principal.kind !== 'user') throw new AccessDeniedError('A service token is not a user.');
  return principal;
}
