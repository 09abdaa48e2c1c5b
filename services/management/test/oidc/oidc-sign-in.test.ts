import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { resetPassword } from '../../src/identity/users.ts';
import { failure, PASSWORD, type TestAccount } from '../harness.ts';
import { type OidcHarness, startOidcHarness } from './oidc-harness.ts';
import { SignInBrowser } from './sign-in-browser.ts';

const SESSION = '/api/v3/session';

let harness: OidcHarness;
let enterprise: TestAccount;
let team: TestAccount;

beforeAll(async () => {
  harness = await startOidcHarness();
  enterprise = await harness.newAccount();
  team = await harness.newAccount({ plan: 'team' });
});

afterAll(() => harness.close());

const both = () => [
  { account: enterprise.id, permission_sets: ['developer'] },
  { account: team.identifier, permission_sets: ['member', 'job_runner'], license: 'developer' },
];

const problemOf = ({ url }: { url: string }) => new URL(url).searchParams.get('problem');

describe('signing in at the identity provider', () => {
  test('creates the user at the first sign-in, with the accounts and permissions of the claim', async () => {
    const subject = harness.newSubject(both());
    const browser = new SignInBrowser();
    const arrival = await harness.browse(subject, { browser, search: '?next=/profile/api-access' });
    expect(arrival.status).toBe(200);
    expect(arrival.text).toContain(`content="0; url=${harness.origin}/profile/api-access"`);
    expect(arrival.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    expect(arrival.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^runhook_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/),
      'runhook_oidc=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax',
    ]);
    const headers = { cookie: browser.cookieOf('127.0.0.1') };
    const { json } = await harness.call('GET', SESSION, { headers });
    expect(json.data).toMatchObject({ email: `${subject}@provider.example`, name: 'Grace Hopper' });
    expect(json.data.accounts).toEqual([
      expect.objectContaining({ id: enterprise.id, permission_sets: ['developer'], license: 'read_only' }),
      expect.objectContaining({
        id: team.id,
        permission_sets: ['member', 'job_runner'],
        license: 'developer',
      }),
    ]);
  });

  test('records address and browser of the session, which replaces that of the same browser', async () => {
    const subject = harness.newSubject(both());
    const browser = new SignInBrowser();
    const other = await harness.signInAt(subject);
    await harness.browse(subject, { browser });
    // A provider on the same site: the browser sends the cookie of the session with the response of the provider.
    await harness.browse(subject, { browser });
    const headers = { cookie: browser.cookieOf('127.0.0.1') };
    const { json } = await harness.call('GET', '/api/v3/profile/sessions', { headers });
    expect(json.data).toHaveLength(2);
    expect(json.data).toContainEqual(
      expect.objectContaining({
        is_current: true,
        client_address: '127.0.0.1',
        browser: 'Firefox on Linux',
      }),
    );
    expect((await harness.call('GET', SESSION, { headers: other.headers })).status).toBe(200);
  });

  test('finds the user by issuer and subject at later sign-ins, whatever the e-mail address is', async () => {
    const subject = harness.newSubject(both());
    const first = await harness.signInAt(subject);
    harness.provider.setUser(subject, { email: 'renamed@provider.example', runhook_accounts: both() });
    const second = await harness.signInAt(subject);
    expect(second.apiKey).toBe(first.apiKey);
  });

  test('creates one user for two concurrent first sign-ins', async () => {
    const subject = harness.newSubject(both());
    const signIns = await Promise.all([harness.signInAt(subject), harness.signInAt(subject)]);
    expect(signIns[0].apiKey).toBe(signIns[1].apiKey);
  });

  test('never opens the user who has the same e-mail address', async () => {
    const user = await harness.newUser(enterprise, 'developer', ['account_admin']);
    const arrival = await harness.browse(harness.newSubject(both(), { email: user.email.toUpperCase() }));
    expect(problemOf(arrival)).toBe('email_taken');
  });

  test('stores the refresh token encrypted', async () => {
    const subject = harness.newSubject(both());
    await harness.signInAt(subject);
    const { refresh_token_ciphertext: ciphertext } = await harness.identityOf(subject);
    expect(ciphertext).toMatch(/^test\./);
    expect(harness.secrets.decrypt(ciphertext)).toMatch(/^[\w-]{20,}$/);
  });

  test.each([
    ['no array', 'developer'],
    ['an unknown account', [{ account: 999_999, permission_sets: [] }]],
    ['an unknown permission set', [{ account: 1, permission_sets: ['root'] }]],
    ['no permission sets', [{ account: 1 }]],
    [
      'an account twice',
      [
        { account: 1, permission_sets: [] },
        { account: '1', permission_sets: [] },
      ],
    ],
    ['nothing', undefined],
  ])('is rejected for a claim with %s', async (_case, accounts) => {
    const arrival = await harness.browse(harness.newSubject(accounts));
    expect(problemOf(arrival)).toBe('invalid_claim');
    expect(arrival.headers.getSetCookie().join()).not.toContain('runhook_session');
  });

  test('accepts a claim that is JSON in a text, and one without accounts', async () => {
    const text = await harness.signInAt(harness.newSubject(JSON.stringify(both())));
    expect((await harness.call('GET', '/api/v3/accounts', { token: text.apiKey })).json.data).toHaveLength(2);
    const none = await harness.signInAt(harness.newSubject([]));
    expect((await harness.call('GET', '/api/v3/accounts', { token: none.apiKey })).json.data).toEqual([]);
  });

  test('needs an e-mail address that the provider calls verified', async () => {
    const missing = await harness.browse(harness.newSubject(both(), { email: undefined }));
    const unverified = await harness.browse(harness.newSubject(both(), { email_verified: false }));
    const silent = await harness.browse(harness.newSubject(both(), { email_verified: undefined }));
    expect([missing, unverified, silent].map(problemOf)).toEqual(Array(3).fill('email_missing'));
    const text = await harness.browse(harness.newSubject(both(), { email_verified: 'true' }));
    expect(text.status).toBe(200);
  });

  test('rejects a user whom the provider rejects, and counts it as a failed sign-in', async () => {
    const countFailures = async () => {
      const metrics = await (await fetch(`${harness.operationsOrigin}/metrics`)).text();
      return Number(
        /^runhook_sign_in_failures_total\{reason="single_sign_on",.*\} (\d+)$/m.exec(metrics)?.[1],
      );
    };
    const before = await countFailures();
    expect(problemOf(await harness.browse('unknown'))).toBe('rejected');
    expect(await countFailures()).toBe(before + 1);
  });

  test('rejects a response of the provider without the state of this browser', async () => {
    const subject = harness.newSubject(both());
    harness.provider.signInAs(subject);
    const start = await fetch(`${harness.origin}${SESSION}/oidc`, { redirect: 'manual' });
    const cookie = start.headers.get('set-cookie')?.split(';')[0] ?? '';
    const state = new URL(start.headers.get('location') ?? '').searchParams.get('state');
    const callback = `${harness.origin}${SESSION}/oidc/callback`;
    const attempts = [
      { search: `?code=x&state=${state}`, cookie: '' },
      { search: '?code=x&state=other', cookie },
      { search: `?code=x&state=${state}&state=${state}`, cookie },
    ];
    for (const { search, cookie } of attempts) {
      const response = await fetch(callback + search, { redirect: 'manual', headers: { cookie } });
      expect(problemOf({ url: response.headers.get('location') ?? '' })).toBe('expired');
    }
    const invented = await fetch(`${callback}?code=x&state=${state}&iss=${harness.provider.issuer}`, {
      redirect: 'manual',
      headers: { cookie },
    });
    expect(problemOf({ url: invented.headers.get('location') ?? '' })).toBe('rejected');
  });

  test.each(['//example.org', '/\\example.org', 'https://example.org', '/a\nb'])(
    'does not open %j after the sign-in',
    async (next) => {
      const search = `?next=${encodeURIComponent(next)}`;
      const { text } = await harness.browse(harness.newSubject(both()), { search });
      expect(text).toContain(`content="0; url=${harness.origin}/"`);
    },
  );

  test('opens the sign-in page while the provider is unavailable', async () => {
    const other = await startOidcHarness();
    try {
      other.provider.setAvailable(false);
      expect(problemOf(await other.browse(other.newSubject([])))).toBe('unavailable');
    } finally {
      await other.close();
    }
  });

  test('is limited for each client', async () => {
    const limited = await harness.startSecond({
      port: 0,
      signInAttemptsPerAddress: 1,
      trustedProxyCidrs: ['127.0.0.0/8'],
    });
    const start = () =>
      fetch(`${limited.origin}${SESSION}/oidc`, {
        redirect: 'manual',
        headers: { 'x-forwarded-for': '198.51.100.7' },
      });
    const locations = [await start(), await start()].map(({ headers }) => headers.get('location') ?? '');
    expect(locations[0]).toMatch(harness.provider.issuer);
    expect(problemOf({ url: locations[1] ?? '' })).toBe('busy');
    await limited.close();
  });

  test('rejects unknown users unless new ones are created', async () => {
    const strict = await startOidcHarness({ oidcCreateUsers: false });
    try {
      expect(problemOf(await strict.browse(strict.newSubject([])))).toBe('unknown_user');
    } finally {
      await strict.close();
    }
  });
});

describe('with passwords switched off', () => {
  test('the sign-in with a password is a 403, and the methods do not name it', async () => {
    const user = await harness.newUser(enterprise, 'developer', []);
    const body = { email: user.email, password: PASSWORD };
    expect(await harness.call('POST', SESSION, { body })).toMatchObject({
      status: 403,
      json: failure(403, 'Access denied: Passwords are switched off; sign in at the identity provider.'),
    });
    const { json } = await harness.call('GET', `${SESSION}/methods`);
    expect(json.data).toEqual({ password: false, oidc: true });
  });

  test('a new password is a 403', async () => {
    const { headers } = await harness.signInAt(harness.newSubject(both()));
    const body = { current_password: PASSWORD, new_password: 'a longer pass phrase with digits 42' };
    expect(await harness.call('PUT', '/api/v3/profile/password', { headers, body })).toMatchObject({
      status: 403,
      json: failure(403, 'Access denied: Passwords are switched off; sign in at the identity provider.'),
    });
  });

  test('a session that was opened with a password is rejected', async () => {
    const withPasswords = await harness.startSecond({ passwordSignIn: 'on', port: 0 });
    const user = await harness.newUser(enterprise, 'developer', []);
    const signedIn = await withPasswords.call('POST', SESSION, {
      body: { email: user.email, password: PASSWORD },
    });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    expect((await withPasswords.call('GET', SESSION, { headers: { cookie } })).status).toBe(200);
    expect((await harness.call('GET', SESSION, { headers: { cookie } })).status).toBe(401);
    await withPasswords.close();
  });

  test('a user of the provider cannot get a password', async () => {
    const subject = harness.newSubject(both());
    await harness.signInAt(subject);
    const { user_id: userId } = await harness.identityOf(subject);
    const { prisma, pool } = harness.database;
    await expect(resetPassword(prisma, Number(userId), PASSWORD)).rejects.toThrow();
    const sql = `UPDATE users SET password_hash = 'x' WHERE id = $1`;
    await expect(pool.query(sql, [userId])).rejects.toThrow(/signs in at the identity provider/);
  });
});

describe('without an identity provider', () => {
  test('its endpoints are a 404', async () => {
    const plain = await harness.startSecond({ oidcIssuer: '', passwordSignIn: 'on', port: 0 });
    for (const path of ['/oidc', '/oidc/callback'])
      expect((await plain.call('GET', SESSION + path)).status).toBe(404);
    expect((await plain.call('GET', `${SESSION}/methods`)).json.data).toEqual({
      password: true,
      oidc: false,
    });
    await plain.close();
  });
});
