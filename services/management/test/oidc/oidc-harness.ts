import {
  findFreePort,
  type IdentityProvider,
  startIdentityProvider,
} from '@runhook/testing/identity-provider';
import type { Settings } from '../../src/settings.ts';
import { GENEROUS_TIMEOUTS, type Harness, type Json, startHarness } from '../harness.ts';
import { type Arrival, SignInBrowser } from './sign-in-browser.ts';

const CLAIM = 'runhook_accounts';

/** The service with an identity provider. */
export interface OidcHarness extends Harness {
  provider: IdentityProvider;
  /** Creates a user at the provider with these accounts and returns the subject. */
  newSubject(accounts: unknown, claims?: Record<string, unknown>): string;
  /** Opens the start of a sign-in, and follows it to its end. */
  browse(subject: string, options?: { browser?: SignInBrowser; search?: string }): Promise<Arrival>;
  /** Signs in; returns the headers of requests from the console's pages, and the API key. */
  signInAt(subject: string): Promise<{ headers: Record<string, string>; apiKey: string }>;
  /** Makes the check of the user's access due, as a minute does. */
  makeDue(subject: string): Promise<void>;
  identityOf(subject: string): Promise<Json>;
}

export async function startOidcHarness(
  overrides: Partial<Settings> = {},
  options: { hasRefreshTokens?: boolean } = {},
): Promise<OidcHarness> {
  const { port } = await findFreePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  const path = `${publicUrl}/api/v3/session/oidc`;
  const provider = await startIdentityProvider({
    redirectUri: `${path}/callback`,
    logoutUri: `${path}/logout`,
    claims: [CLAIM],
    ...options,
  });
  const settings: Partial<Settings> = {
    port,
    publicUrl,
    oidcIssuer: provider.issuer,
    oidcClientId: provider.clientId,
    oidcClientSecret: provider.clientSecret,
    oidcClaimAccounts: CLAIM,
    oidcCreateUsers: true,
    passwordSignIn: 'off',
    ...overrides,
  };
  const harness = await startHarness(settings, { timeouts: GENEROUS_TIMEOUTS });
  let subjects = 0;

  const browse: OidcHarness['browse'] = async (
    subject,
    { browser = new SignInBrowser(), search = '' } = {},
  ) => {
    provider.signInAs(subject);
    return await browser.open(`${path}${search}`);
  };

  return {
    ...harness,
    provider,
    newSubject(accounts, claims = {}) {
      subjects += 1;
      const subject = `subject-${subjects}`;
      const email = `${subject}@provider.example`;
      provider.setUser(subject, {
        name: 'Grace Hopper',
        email,
        email_verified: true,
        [CLAIM]: accounts,
        ...claims,
      });
      return subject;
    },
    browse,
    async signInAt(subject) {
      const browser = new SignInBrowser();
      const arrival = await browse(subject, { browser });
      if (arrival.status !== 200) throw new Error(`${arrival.status} ${arrival.url} ${arrival.text}`);
      const headers = { cookie: browser.cookieOf('127.0.0.1'), 'sec-fetch-site': 'same-origin' };
      const { json } = await harness.call('GET', '/api/v3/profile', { headers });
      return { headers, apiKey: json.data.api_key };
    },
    async makeDue(subject) {
      await harness.database.pool.query(
        'UPDATE oidc_identities SET check_due_at = now() WHERE subject = $1',
        [subject],
      );
    },
    async identityOf(subject) {
      const sql = 'SELECT * FROM oidc_identities WHERE subject = $1';
      return (await harness.database.pool.query(sql, [subject])).rows[0];
    },
    async close() {
      await harness.close();
      await provider.close();
    },
  };
}
