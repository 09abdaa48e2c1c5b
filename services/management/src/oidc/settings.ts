/** Settings of the OpenID Connect provider. */
export interface OidcSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Address of the console in browsers, without a slash at its end. */
  publicUrl: string;
  /** Name of the claim with accounts; null if operators manage memberships. */
  claimAccounts: string | null;
  createUsers: boolean;
}

const LOOPBACK_HOSTS = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Throws a sentence for the operator. The client secret and all tokens are sent there, so it must be https. */
export function issuerUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK_HOSTS.has(url.hostname));
  if (!url || !isSafe || url.search !== '' || url.hash !== '' || url.username !== '')
    throw new Error('must be an https URL without credentials, query and fragment');
  return text;
}

/** Returns null without `OIDC_ISSUER`. The other settings are then checked to be present. */
export function oidcSettings(settings: {
  publicUrl?: string;
  oidcIssuer?: string;
  oidcClientId?: string;
  oidcClientSecret?: string;
  oidcClaimAccounts?: string;
  oidcCreateUsers: boolean;
}): OidcSettings | null {
  const { publicUrl, oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret } = settings;
  if (!issuer || !clientId || !clientSecret || !publicUrl) return null;
  return {
    issuer,
    clientId,
    clientSecret,
    publicUrl: withoutSlash(publicUrl),
    claimAccounts: settings.oidcClaimAccounts || null,
    createUsers: settings.oidcCreateUsers,
  };
}

/** Returns the URL without slashes at its end. */
export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
