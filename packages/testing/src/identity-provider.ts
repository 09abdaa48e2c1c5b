import { generateKeyPairSync, type JsonWebKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type Configuration, type KoaContextWithOIDC } from 'oidc-provider';

/** For a service whose address must be known before it starts. */
export { findFreePort } from '@runhook/embedded';

/** An OpenID Connect provider (npm `oidc-provider`) on a real socket, with one client. */
export interface IdentityProvider {
  /** On `localhost`, so that for a browser it is another site than services on 127.0.0.1. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Private key of its tokens. */
  signingKey: JsonWebKey;
  /** Creates the user, or replaces the claims. */
  setUser(subject: string, claims: Record<string, unknown>): void;
  /** Selects the user who signs in next. */
  signInAs(subject: string): void;
  /** Revokes the access: the user cannot sign in, and refresh tokens are rejected. */
  revoke(subject: string): void;
  /** Sends a logout token of the user's latest session to the client. */
  logOut(subject: string): Promise<void>;
  /** Session of the user's latest sign-in. */
  sidOf(subject: string): string;
  /** An unavailable provider responds with 503 to everything. */
  setAvailable(isAvailable: boolean): void;
  /** Makes the userinfo endpoint alone respond with 503. */
  setUserinfoAvailable(isAvailable: boolean): void;
  /** Number of requests to the token endpoint by the kind of grant. */
  grantCounts: Record<string, number>;
  close(): Promise<void>;
}

export interface IdentityProviderOptions {
  redirectUri: string;
  logoutUri: string;
  /** Whether it issues refresh tokens; true when omitted. */
  hasRefreshTokens?: boolean;
  /** Names of claims in addition to the standard ones. */
  claims?: string[];
}

const CLIENT_ID = 'runhook';

export async function startIdentityProvider(options: IdentityProviderOptions): Promise<IdentityProvider> {
  const { redirectUri, logoutUri, hasRefreshTokens = true, claims = [] } = options;
  const users = new Map<string, Record<string, unknown>>();
  const sids = new Map<string, string>();
  const grantCounts: Record<string, number> = {};
  const clientSecret = randomBytes(24).toString('hex');
  const signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  let nextSubject = '';
  let isAvailable = true;
  let isUserinfoAvailable = true;

  const configuration: Configuration = {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', ...(hasRefreshTokens ? ['refresh_token'] : [])],
        response_types: ['code'],
        backchannel_logout_uri: logoutUri,
        backchannel_logout_session_required: true,
      },
    ],
    jwks: { keys: [{ ...signingKey, use: 'sig', alg: 'RS256', kid: 'test' } as never] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    claims: { openid: ['sub', ...claims], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, subject) => {
      const userClaims = users.get(subject);
      return userClaims && { accountId: subject, claims: async () => ({ sub: subject, ...userClaims }) };
    },
    loadExistingGrant: grantEverything,
    issueRefreshToken: async () => hasRefreshTokens,
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 60,
      AuthorizationCode: 60,
      Grant: 3_600,
      IdToken: 300,
      Interaction: 300,
      RefreshToken: 3_600,
      Session: 3_600,
    },
    // Its own dispatcher closes connections to loopback addresses.
    fetch: (url: string | URL | Request, init?: RequestInit & { dispatcher?: unknown }) => {
      const { dispatcher: _, ...rest } = init ?? {};
      return fetch(url, rest);
    },
  } as Configuration;

  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, configuration);
  provider.on('authorization.success', ({ oidc }) => {
    const { session, client } = oidc;
    if (session?.accountId && client) sids.set(session.accountId, session.sidFor(client.clientId) ?? '');
  });
  provider.use(async (context, next) => {
    await next();
    const grantType = context.oidc?.route === 'token' ? context.oidc.params?.grant_type : undefined;
    if (typeof grantType === 'string') grantCounts[grantType] = (grantCounts[grantType] ?? 0) + 1;
  });
  const handle = provider.callback();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const isUserinfo = request.url?.split('?')[0] === '/me';
    if (!isAvailable || (isUserinfo && !isUserinfoAvailable)) return void response.writeHead(503).end();
    if (request.url?.startsWith('/interaction/')) return void finishSignIn(request, response);
    void handle(request, response);
  });
  async function finishSignIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const result = users.has(nextSubject)
      ? { login: { accountId: nextSubject } }
      : { error: 'access_denied', error_description: 'no such user' };
    await provider.interactionFinished(request, response, result).catch((error: Error) => {
      response.writeHead(500).end(error.message);
    });
  }

  const sidOf = (subject: string) => sids.get(subject) ?? '';
  return {
    issuer,
    clientId: CLIENT_ID,
    clientSecret,
    signingKey,
    grantCounts,
    setUser: (subject, userClaims) => void users.set(subject, userClaims),
    signInAs(subject) {
      nextSubject = subject;
    },
    revoke: (subject) => void users.delete(subject),
    async logOut(subject) {
      const client = (await provider.Client.find(CLIENT_ID)) as unknown as LogoutSender;
      await client.backchannelLogout(subject, sidOf(subject));
    },
    sidOf,
    setAvailable(available) {
      isAvailable = available;
    },
    setUserinfoAvailable(available) {
      isUserinfoAvailable = available;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A method of the provider's clients that its type declarations omit. */
interface LogoutSender {
  backchannelLogout(subject: string, sid: string): Promise<void>;
}

/** Every client gets what it asks for, without a page for consent. */
async function grantEverything({ oidc }: KoaContextWithOIDC) {
  const { client, session, provider } = oidc;
  if (!client || !session?.accountId) return undefined;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope('openid profile email offline_access');
  await grant.save();
  return grant;
}
