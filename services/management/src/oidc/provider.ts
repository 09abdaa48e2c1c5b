import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client';
import { boundedFetch, PROVIDER_TIMEOUT_MS } from './bounded-fetch.ts';
import { createLogoutVerifier, type LogoutToken } from './logout-token.ts';
import type { OidcSettings } from './settings.ts';
import type { SignInFlow } from './sign-in-cookie.ts';

/** A user as the provider describes it, at a sign-in or a later check. */
export interface ProviderUser {
  issuer: string;
  subject: string;
  /** Session at the provider; null if it has no name. */
  sid: string | null;
  /** Null if the provider issued none. */
  refreshToken: string | null;
  /** Claims of the ID token and of the userinfo endpoint. */
  claims: Readonly<Record<string, unknown>>;
}

/**
 * `rejected`: the provider does not confirm the user. `unavailable`: it did not answer, or not according to the
 * protocol, or does not accept this client, which says nothing about the user.
 */
export type ProviderResult =
  | { kind: 'confirmed'; user: ProviderUser }
  | { kind: 'rejected'; reason: string }
  | { kind: 'unavailable'; error: unknown };

/** The OpenID Connect provider: code flow with PKCE, refresh tokens, logout tokens. */
export interface Provider {
  /** Returns the address to which the browser is sent. Throws if the provider's configuration cannot be read. */
  authorizationUrl(flow: Omit<SignInFlow, 'next'>): Promise<URL>;
  /** Exchanges the code. @param query of the provider's redirect, with its question mark */
  exchange(query: string, flow: SignInFlow): Promise<ProviderResult>;
  /**
   * Renews the tokens of a user.
   * @param subject of the user to whom the token was issued
   * @param onRotated called with the token that replaces this one, before a further request can fail: most providers take
   *   a second use of the old one for a theft
   */
  refresh(
    refreshToken: string,
    subject: string,
    onRotated: (refreshToken: string) => Promise<void>,
  ): Promise<ProviderResult>;
  /** Returns null unless the provider signed the token for this client. Throws if its keys cannot be read. */
  verifyLogoutToken(token: string): Promise<LogoutToken | null>;
}

export const CALLBACK_PATH = '/api/v3/session/oidc/callback';

const GOOGLE_ISSUER = 'https://accounts.google.com';
const REDISCOVERY_MS = 3_600_000;
/** Interval between two reads of the configuration while it cannot be read. */
const RETRY_MS = 5_000;

/** Requested if the provider lists them, because some reject a scope that they do not know. */
const OPTIONAL_SCOPES = ['profile', 'email', 'offline_access'];

type Client = typeof import('openid-client');
type Tokens = TokenEndpointResponse & TokenEndpointResponseHelpers;

interface Discovered {
  client: Client;
  configuration: Configuration;
  verifyLogoutToken: (token: string) => Promise<LogoutToken | null>;
}

export function createProvider(settings: OidcSettings, nowMs: () => number = Date.now): Provider {
  const discover = cacheDiscovery(() => discoverProvider(settings), nowMs);
  const redirectUri = settings.publicUrl + CALLBACK_PATH;

  /** Reads the userinfo endpoint for what the ID token lacks: many providers put custom claims only there. */
  async function describe(
    { client, configuration }: Discovered,
    tokens: Tokens,
    subject: string,
    isSignIn: boolean,
  ): Promise<ProviderUser> {
    const idClaims: Record<string, unknown> = { ...tokens.claims() };
    const { issuer, userinfo_endpoint: endpoint } = configuration.serverMetadata();
    const needed = [
      ...(isSignIn ? ['email', 'email_verified'] : []),
      ...(settings.claimAccounts ? [settings.claimAccounts] : []),
    ];
    const isComplete = needed.every((name) => idClaims[name] !== undefined);
    const userinfo =
      isComplete || endpoint === undefined
        ? {}
        : await client
            .fetchUserInfo(configuration, tokens.access_token, subject)
            .catch((error: unknown) =>
              Promise.reject(isChallenge(error) ? new AccessRejectedError() : error),
            );
    return {
      issuer,
      subject,
      sid: typeof idClaims.sid === 'string' ? idClaims.sid : null,
      refreshToken: tokens.refresh_token ?? null,
      claims: { ...userinfo, ...idClaims },
    };
  }

  return {
    async authorizationUrl({ state, nonce, verifier }) {
      const { client, configuration } = await discover();
      const { issuer, scopes_supported: scopes } = configuration.serverMetadata();
      const scope = ['openid', ...OPTIONAL_SCOPES.filter((name) => scopes?.includes(name))].join(' ');
      return client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        // Google issues refresh tokens by these parameters only.
        ...(issuer === GOOGLE_ISSUER && { access_type: 'offline', prompt: 'consent' }),
      });
    },
    exchange: (query, flow) =>
      asResult(async () => {
        const discovered = await discover();
        const tokens = await discovered.client.authorizationCodeGrant(
          discovered.configuration,
          new URL(redirectUri + query),
          {
            expectedState: flow.state,
            expectedNonce: flow.nonce,
            pkceCodeVerifier: flow.verifier,
            idTokenExpected: true,
          },
        );
        const subject = tokens.claims()?.sub ?? '';
        return await describe(discovered, tokens, subject, true);
      }),
    refresh: (refreshToken, subject, onRotated) =>
      asResult(async () => {
        const discovered = await discover();
        const tokens = await discovered.client.refreshTokenGrant(discovered.configuration, refreshToken);
        const refreshed = tokens.claims()?.sub;
        if (refreshed !== undefined && refreshed !== subject) throw new OtherSubjectError();
        if (tokens.refresh_token !== undefined) await onRotated(tokens.refresh_token);
        return await describe(discovered, tokens, subject, false);
      }),
    verifyLogoutToken: async (token) => (await discover()).verifyLogoutToken(token),
  };
}

/** A refresh token returned the tokens of another user. */
class OtherSubjectError extends Error {
  readonly code = 'other_subject';
}

async function discoverProvider({ issuer, clientId, clientSecret }: OidcSettings): Promise<Discovered> {
  // Loaded at first use, because most installations have no provider.
  const client = await import('openid-client');
  const server = new URL(issuer);
  const basic = client.ClientSecretBasic(clientSecret);
  const post = client.ClientSecretPost(clientSecret);
  const configuration = await client.discovery(
    server,
    clientId,
    {},
    (as, ...rest) => {
      // OpenID Connect Discovery: basic is the default.
      const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
      return (methods.includes('client_secret_basic') ? basic : post)(as, ...rest);
    },
    {
      timeout: PROVIDER_TIMEOUT_MS / 1_000,
      [client.customFetch]: (url, init) => boundedFetch(url, init as RequestInit),
      // Without this check, signatures of ID tokens would not be verified.
      execute: [
        client.enableNonRepudiationChecks,
        ...(server.protocol === 'http:' ? [client.allowInsecureRequests] : []),
      ],
    },
  );
  const metadata = configuration.serverMetadata();
  return { client, configuration, verifyLogoutToken: createLogoutVerifier(metadata, clientId) };
}

/** Caches the result for an hour, and a failure for a few seconds, so that callers cannot multiply the requests. */
function cacheDiscovery(read: () => Promise<Discovered>, nowMs: () => number): () => Promise<Discovered> {
  let cached: { result: Promise<Discovered>; untilMs: number } | null = null;
  return () => {
    if (cached !== null && nowMs() < cached.untilMs) return cached.result;
    const previous = cached?.result;
    // A provider whose configuration cannot be read again is used as before.
    const result = read().catch((error: unknown) => previous ?? Promise.reject(error));
    const entry = { result, untilMs: nowMs() + REDISCOVERY_MS };
    cached = entry;
    result.catch(() => {
      entry.untilMs = nowMs() + RETRY_MS;
    });
    return result;
  };
}

async function asResult(call: () => Promise<ProviderUser>): Promise<ProviderResult> {
  try {
    return { kind: 'confirmed', user: await call() };
  } catch (error) {
    const reason = rejectionReason(error);
    return reason === null ? { kind: 'unavailable', error } : { kind: 'rejected', reason };
  }
}

/** The userinfo endpoint rejects an access token that was issued a moment ago. */
class AccessRejectedError extends Error {
  readonly code = 'access_denied';
}

/** The token endpoint also challenges a client whose secret is wrong, which says nothing about the user. */
function isChallenge(error: unknown): boolean {
  const { name, status } = error as { name?: string; status?: unknown };
  return name === 'WWWAuthenticateChallengeError' && (status === 401 || status === 403);
}

/** Error codes that concern the user. Others concern this client, the protocol or the load of the provider. */
const USER_ERRORS = new Set([
  'invalid_grant',
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
]);

/** Returns why the provider rejects the user; null for an error that does not say so. */
function rejectionReason(error: unknown): string | null {
  if (error instanceof OtherSubjectError || error instanceof AccessRejectedError) return error.code;
  const { name, error: code, status } = error as { name?: string; error?: unknown; status?: unknown };
  const isOAuthError = name === 'ResponseBodyError' || name === 'AuthorizationResponseError';
  return isOAuthError && status !== 429 && typeof code === 'string' && USER_ERRORS.has(code) ? code : null;
}
