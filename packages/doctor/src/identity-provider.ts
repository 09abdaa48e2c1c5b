import { type Finding, failed, ok, reasonOf, warning } from './finding.ts';

const CHECK = 'identity provider';

/** Checks that the provider's discovery document can be read, and is that of the issuer. */
export async function examineIdentityProvider(issuer: string, timeoutMs: number): Promise<Finding> {
  const url = `${withoutSlash(issuer)}/.well-known/openid-configuration`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'manual' });
    const document = (await response.json().catch(() => null)) as Discovery | null;
    if (!response.ok || typeof document?.issuer !== 'string')
      return failed(
        CHECK,
        `${url} is no discovery document (${response.status})`,
        'Set OIDC_ISSUER to the issuer of the provider, with its path.',
      );
    return examineDocument(issuer, document);
  } catch (error) {
    return failed(
      CHECK,
      `${url} cannot be read (${reasonOf(error)})`,
      'Check OIDC_ISSUER, the certificate of the provider, and firewalls and network policies from management to it.',
    );
  }
}

interface Discovery {
  issuer: string;
  authorization_endpoint?: unknown;
  token_endpoint?: unknown;
  jwks_uri?: unknown;
  scopes_supported?: unknown;
  backchannel_logout_supported?: unknown;
}

function examineDocument(issuer: string, document: Discovery): Finding {
  if (withoutSlash(document.issuer) !== withoutSlash(issuer))
    return failed(CHECK, `names another issuer: ${document.issuer.slice(0, 200)}`, 'Set OIDC_ISSUER to it.');
  const missing = (['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const).filter(
    (name) => typeof document[name] !== 'string',
  );
  if (missing.length > 0)
    return failed(CHECK, `has no ${missing.join(', ')}`, 'Use a provider with the authorization code flow.');
  const { scopes_supported: scopes, backchannel_logout_supported: hasLogout } = document;
  const hasOffline = Array.isArray(scopes) && scopes.includes('offline_access');
  const features = [
    hasOffline ? 'offline_access' : 'no offline_access',
    hasLogout === true ? 'back-channel logout' : 'no back-channel logout',
  ].join(', ');
  if (hasOffline || hasLogout === true) return ok(CHECK, `can be read: ${features}`);
  return warning(
    CHECK,
    `can be read: ${features}`,
    'Unless it issues refresh tokens otherwise, revoked users keep access for CONSOLE_SESSION_MAX_HOURS: docs/oidc.md.',
  );
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
