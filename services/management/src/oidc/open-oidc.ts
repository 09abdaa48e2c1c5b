import { randomBytes } from 'node:crypto';
import type { Pool, SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { Logger } from '@runhook/runtime';
import type { Authentication } from '../http/authentication.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { AccessDeniedError } from '../http/errors.ts';
import type { Limiter } from '../http/limits.ts';
import type { ConsoleSessions } from '../sessions/console-sessions.ts';
import { cookieProtection } from '../sessions/cookie-protection.ts';
import { type AccessCheck, CHECK_MS, createAccessCheck } from './access-check.ts';
import { createExchangeSlots } from './callback.ts';
import { recordLogout } from './identities.ts';
import { createProvider } from './provider.ts';
import { type OidcRouteDependencies, oidcEndpoints } from './routes.ts';
import type { OidcSettings } from './settings.ts';
import { createOidcSignIn } from './sign-in.ts';
import { createSignInCookie } from './sign-in-cookie.ts';

/** Sign-in by OpenID Connect, and the check of its users' access. */
export interface Oidc {
  endpoints: Endpoint[];
  /** Adds the check of the access to the search for callers. */
  withAccessCheck(authentication: Authentication): Authentication;
  /** Whether a user still has access, checked at the provider if that is due. For responses that stay open. */
  hasAccess(userId: number): Promise<boolean>;
}

interface OidcDependencies {
  pool: Pool;
  prisma: PrismaClient;
  secrets: SecretBox;
  sessions: ConsoleSessions;
  /** Limit of the calls of one client, of which a sign-in takes two. */
  limiter: Pick<Limiter, 'consume' | 'refund'>;
  /** Returns the client of an address. */
  networkOf: (address: string) => string;
  logger: Logger;
  /** Counts failed sign-ins. */
  failures: OidcRouteDependencies['failures'];
  maxHours: number;
  /** Whether passwords are accepted. */
  passwordSignIn: boolean;
  /** Time for which an answer of the provider is valid; {@link CHECK_MS} when omitted. */
  checkMs?: number | undefined;
}

/** @param settings null if there is no provider */
export function openOidc(settings: OidcSettings | null, deps: OidcDependencies): Oidc {
  const { pool, prisma, secrets, logger, failures, passwordSignIn, checkMs = CHECK_MS } = deps;
  const methods = { password: passwordSignIn, oidc: settings !== null };
  if (settings === null) {
    return {
      endpoints: oidcEndpoints(null, methods),
      withAccessCheck: (authentication) => withAccessCheck(authentication, null, passwordSignIn),
      // Without a provider there is nothing to check.
      hasAccess: async () => true,
    };
  }
  const provider = createProvider(settings);
  const access = createAccessCheck({ pool, prisma, secrets, provider, settings, logger, checkMs });
  const routes: OidcRouteDependencies = {
    settings,
    provider,
    cookie: createSignInCookie(secrets, cookieProtection(settings.publicUrl, false)),
    signIn: createOidcSignIn({ ...deps, settings, checkMs }),
    slots: createExchangeSlots(deps.limiter, deps.networkOf),
    recordLogout: (token) => recordLogout(pool, token),
    logger,
    failures,
    createFlow: () => ({ state: randomText(), nonce: randomText(), verifier: randomText() }),
  };
  return {
    endpoints: oidcEndpoints(routes, methods),
    withAccessCheck: (authentication) => withAccessCheck(authentication, access, passwordSignIn),
    hasAccess: async (userId) => (await access.check(userId)) !== 'ended',
  };
}

/** Returns 256 random bits in base64url, which is also the form of a PKCE verifier. */
function randomText(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Rejects callers whose access at the provider has ended. After a check the caller is read again, because the check may
 * have changed the memberships.
 * @param access null if there is no provider: users of an earlier one cannot be checked, and are rejected
 */
function withAccessCheck(
  { findPrincipal, findSession }: Authentication,
  access: AccessCheck | null,
  passwordSignIn: boolean,
): Authentication {
  return {
    async findPrincipal(credential, isVersionChecked) {
      const found = await findPrincipal(credential, isVersionChecked);
      if (found?.principal.kind !== 'user' || found.validMs === null || found.validMs > 0) return found;
      const verdict = (await access?.check(found.principal.userId)) ?? 'ended';
      return verdict === 'ended' ? null : await findPrincipal(credential, false);
    },
    async findSession(sessionId) {
      const caller = await findSession(sessionId);
      if (caller?.principal.kind !== 'user' || access === null) return caller;
      const verdict = await access.check(caller.principal.userId);
      if (verdict === 'ended' || (verdict === 'unmanaged' && !passwordSignIn)) return null;
      return verdict === 'confirmed' ? await findSession(sessionId) : caller;
    },
  };
}

/** Replaces the endpoints of these routes, such as `POST /api/v3/session`, by a 403. */
export function withoutPasswords(endpoints: readonly Endpoint[], routes: readonly string[]): Endpoint[] {
  return endpoints.map((endpoint) =>
    routes.includes(`${endpoint.method} ${endpoint.path}`)
      ? {
          ...endpoint,
          handle: async () => {
            throw new AccessDeniedError('Passwords are switched off; sign in at the identity provider.');
          },
        }
      : endpoint,
  );
}
