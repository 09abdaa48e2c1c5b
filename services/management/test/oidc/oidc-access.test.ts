import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSecretBox } from '@runhook/database';
import { eventually } from '@runhook/testing';
import { type CryptoKey, generateKeyPair, importJWK, SignJWT, UnsecuredJWT } from 'jose';
import { callApi, type SecondManagement, type TestAccount } from '../harness.ts';
import { type OidcHarness, startOidcHarness } from './oidc-harness.ts';
import { SignInBrowser } from './sign-in-browser.ts';

const SESSION = '/api/v3/session';
const LOGOUT = `${SESSION}/oidc/logout`;
const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} };

let harness: OidcHarness;
let second: SecondManagement;
let account: TestAccount;

beforeAll(async () => {
  harness = await startOidcHarness();
  second = await harness.startSecond({ port: 0 });
  account = await harness.newAccount();
});

afterAll(async () => {
  await second.close();
  await harness.close();
});

const developer = () => [{ account: account.id, permission_sets: ['developer', 'job_runner'] }];

async function signedIn(target = harness) {
  const subject = target.newSubject(developer());
  return { subject, ...(await target.signInAt(subject)) };
}

/** Statuses of a call by session and of one by API key, on both processes. */
async function statusesOf({ headers, apiKey }: { headers: Record<string, string>; apiKey: string }) {
  const calls = [harness, second].flatMap(({ call }) => [
    call('GET', SESSION, { headers }),
    call('GET', '/api/v3/accounts', { token: apiKey }),
  ]);
  return (await Promise.all(calls)).map(({ status }) => status);
}

const OK = [200, 200, 200, 200];
const ENDED = [401, 401, 401, 401];

const refreshCount = () => harness.provider.grantCounts.refresh_token ?? 0;

describe('the check of the access at the provider', () => {
  test('is made after a minute, once for all processes and concurrent requests', async () => {
    const user = await signedIn();
    const before = refreshCount();
    expect(await statusesOf(user)).toEqual(OK);
    expect(refreshCount()).toBe(before);
    const { check_due_at: dueAt, checked_at: checkedAt } = await harness.identityOf(user.subject);
    expect(dueAt.getTime() - checkedAt.getTime()).toBe(60_000);
    await harness.makeDue(user.subject);
    const statuses = (await Promise.all([1, 2, 3, 4].map(() => statusesOf(user)))).flat();
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(refreshCount()).toBe(before + 1);
  });

  test('ends sessions and API key of a user whose access was revoked, until the next sign-in', async () => {
    const user = await signedIn();
    harness.provider.revoke(user.subject);
    await harness.makeDue(user.subject);
    expect(await statusesOf(user)).toEqual(ENDED);
    const {
      user_id: userId,
      ended_at: endedAt,
      refresh_token_ciphertext: token,
    } = await harness.identityOf(user.subject);
    expect([endedAt, token]).toEqual([expect.any(Date), null]);
    const { prisma } = harness.database;
    expect(await prisma.consoleSession.count({ where: { userId: BigInt(userId) } })).toBe(0);
    const audit = await harness.call('GET', `/api/v3/accounts/${account.id}/audit?action=access.ended`, {
      token: account.token,
    });
    expect(audit.json.data[0]).toMatchObject({ actor: { kind: 'service' }, target: { id: String(userId) } });

    harness.provider.setUser(user.subject, { runhook_accounts: developer() });
    const secondSignIn = await harness.signInAt(user.subject);
    expect(secondSignIn.apiKey).toBe(user.apiKey);
    expect(await statusesOf(secondSignIn)).toEqual(OK);
    expect((await harness.call('GET', SESSION, { headers: user.headers })).status).toBe(401);
  });

  test('ends the API key of a user without a session, also for cached callers of batched calls', async () => {
    const user = await signedIn();
    const jobId = await harness.newJob(account);
    await harness.database.pool.query('DELETE FROM console_sessions');
    const report = () =>
      second.call('POST', `/api/v2/accounts/${account.id}/runs/`, {
        token: user.apiKey,
        body: { job_id: jobId, engine_version: '1.9.2' },
      });
    expect((await report()).status).toBe(201);
    harness.provider.revoke(user.subject);
    await harness.makeDue(user.subject);
    // Another process ends the access; this one has the caller in its cache.
    expect((await harness.call('GET', '/api/v3/accounts', { token: user.apiKey })).status).toBe(401);
    expect((await report()).status).toBe(401);
  });

  test('is made for open streams of changes, and ends them', async () => {
    const [revoked, confirmed] = [await signedIn(), await signedIn()];
    const abort = new AbortController();
    const ended: string[] = [];
    const listen = async (name: string, origin: string, headers: Record<string, string>) => {
      const response = await fetch(origin + account.path('/changes'), { headers, signal: abort.signal });
      expect(response.status).toBe(200);
      const end = () => void ended.push(name);
      void response.text().then(end, () => undefined);
    };
    for (const [name, { headers, apiKey }] of Object.entries({ revoked, confirmed })) {
      await listen(`${name} session`, harness.origin, headers);
      await listen(`${name} key`, second.origin, { authorization: `Token ${apiKey}` });
    }
    harness.provider.revoke(revoked.subject);
    for (const { subject } of [revoked, confirmed]) await harness.makeDue(subject);
    await eventually(() => expect([...ended].sort()).toEqual(['revoked key', 'revoked session']));
    await eventually(async () => {
      const { check_due_at: dueAt } = await harness.identityOf(confirmed.subject);
      expect(dueAt.getTime()).toBeGreaterThan(Date.now());
    });
    expect(ended).toHaveLength(2);
    abort.abort();
  });

  test('changes the memberships to those of the claim', async () => {
    const other = await harness.newAccount();
    const user = await signedIn();
    const claim = [{ account: other.id, permission_sets: ['read_only'] }];
    harness.provider.setUser(user.subject, { runhook_accounts: claim });
    await harness.makeDue(user.subject);
    const { json } = await second.call('GET', SESSION, { headers: user.headers });
    expect(json.data.accounts).toEqual([
      expect.objectContaining({ id: other.id, permission_sets: ['read_only'] }),
    ]);
    expect((await harness.call('GET', account.path('/subscriptions'), { token: user.apiKey })).status).toBe(
      403,
    );
  });

  test('ends the access if the claim is no longer valid', async () => {
    const user = await signedIn();
    harness.provider.setUser(user.subject, { runhook_accounts: [{ account: 'act_x' }] });
    await harness.makeDue(user.subject);
    expect(await statusesOf(user)).toEqual(ENDED);
  });

  test('tolerates a provider that does not answer for 15 minutes', async () => {
    const user = await signedIn();
    const setTimes = (checkedMinutes: number) =>
      harness.database.pool.query(
        `UPDATE oidc_identities SET check_due_at = now(), claimed_until = NULL,
          checked_at = now() - make_interval(mins => $2) WHERE subject = $1`,
        [user.subject, checkedMinutes],
      );
    harness.provider.setAvailable(false);
    try {
      await setTimes(14);
      expect(await statusesOf(user)).toEqual(OK);
      await setTimes(16);
      expect((await harness.call('GET', SESSION, { headers: user.headers })).status).toBe(503);
    } finally {
      harness.provider.setAvailable(true);
    }
    await harness.makeDue(user.subject);
    expect(await statusesOf(user)).toEqual(OK);
  });

  test('tolerates a client secret that the provider no longer accepts', async () => {
    const user = await signedIn();
    const misconfigured = await harness.startSecond({ port: 0, oidcClientSecret: 'outdated' });
    await harness.makeDue(user.subject);
    expect((await misconfigured.call('GET', SESSION, { headers: user.headers })).status).toBe(200);
    expect((await harness.identityOf(user.subject)).ended_at).toBeNull();
    await misconfigured.close();
    await harness.makeDue(user.subject);
    expect(await statusesOf(user)).toEqual(OK);
  });

  test('keeps the new refresh token if a later request of the check fails', async () => {
    const user = await signedIn();
    harness.provider.setUserinfoAvailable(false);
    try {
      await harness.makeDue(user.subject);
      expect(await statusesOf(user)).toEqual(OK);
    } finally {
      harness.provider.setUserinfoAvailable(true);
    }
    const before = refreshCount();
    await harness.makeDue(user.subject);
    expect(await statusesOf(user)).toEqual(OK);
    expect(refreshCount()).toBe(before + 1);
    expect((await harness.identityOf(user.subject)).ended_at).toBeNull();
  });

  test('continues after a process died during a check', async () => {
    const user = await signedIn();
    await harness.database.pool.query(
      `UPDATE oidc_identities SET check_due_at = now(), check_claim = 'dead', claimed_until = now() - interval '1 s'
       WHERE subject = $1`,
      [user.subject],
    );
    expect(await statusesOf(user)).toEqual(OK);
  });

  test('needs a new sign-in if the refresh token cannot be decrypted', async () => {
    const user = await signedIn();
    const other = createSecretBox([{ name: 'other', key: Buffer.alloc(32, 1) }]);
    await harness.database.pool.query(
      'UPDATE oidc_identities SET refresh_token_ciphertext = $2, check_due_at = now() WHERE subject = $1',
      [user.subject, other.encrypt('token')],
    );
    expect(await statusesOf(user)).toEqual(ENDED);
  });

  test('rejects the API key of a user whose provider is no longer configured', async () => {
    const user = await signedIn();
    const plain = await harness.startSecond({ port: 0, oidcIssuer: '', passwordSignIn: 'on' });
    await harness.makeDue(user.subject);
    expect((await plain.call('GET', '/api/v3/accounts', { token: user.apiKey })).status).toBe(401);
    await plain.close();
  });
});

describe('a logout token', () => {
  test('ends the session at once, and the API key if the access was revoked', async () => {
    const user = await signedIn();
    harness.provider.revoke(user.subject);
    await harness.provider.logOut(user.subject);
    expect(await statusesOf(user)).toEqual(ENDED);
  });

  test('ends the session that it names, and not the access', async () => {
    const user = await signedIn();
    const firstSid = harness.provider.sidOf(user.subject);
    const other = await harness.signInAt(user.subject);
    expect(harness.provider.sidOf(user.subject)).not.toBe(firstSid);
    await harness.provider.logOut(user.subject);
    expect(await statusesOf(other)).toEqual([401, 200, 401, 200]);
    expect(await statusesOf(user)).toEqual(OK);
  });

  test('without a session ends all sessions of the user', async () => {
    const user = await signedIn();
    const other = await harness.signInAt(user.subject);
    expect(await send(await logoutToken({ sub: user.subject }))).toBe(200);
    expect(await statusesOf(user)).toEqual([401, 200, 401, 200]);
    expect((await harness.call('GET', SESSION, { headers: other.headers })).status).toBe(401);
  });

  test('without a subject ends its session', async () => {
    const user = await signedIn();
    expect(await send(await logoutToken({ sid: harness.provider.sidOf(user.subject) }))).toBe(200);
    expect((await harness.call('GET', SESSION, { headers: user.headers })).status).toBe(401);
  });

  test('is rejected unless the provider has signed it for this client now', async () => {
    const user = await signedIn();
    const sub = user.subject;
    const foreign = await generateKeyPair('RS256');
    const now = Math.floor(Date.now() / 1_000);
    const symmetric = new TextEncoder().encode(harness.provider.clientSecret);
    const tokens = {
      'no token': '',
      'no JWT': 'a.b.c',
      'another key': await logoutToken({ sub }, { key: foreign.privateKey }),
      'another audience': await logoutToken({ sub, aud: 'other' }),
      'another issuer': await logoutToken({ sub, iss: 'https://example.org' }),
      'an old token': await logoutToken({ sub, iat: now - 3_600, exp: now + 60 }),
      'an expired token': await logoutToken({ sub, exp: now - 3_600 }),
      'a nonce': await logoutToken({ sub, nonce: 'x' }),
      'no event': await logoutToken({ sub, events: {} }),
      'neither subject nor session': await logoutToken({}),
      'a symmetric key': await logoutToken({ sub }, { key: symmetric, alg: 'HS256' }),
      'no signature': new UnsecuredJWT({ sub, events: EVENTS })
        .setIssuer(harness.provider.issuer)
        .setAudience('runhook')
        .setIssuedAt()
        .encode(),
    };
    const statuses = Object.fromEntries(
      await Promise.all(Object.entries(tokens).map(async ([name, token]) => [name, await send(token)])),
    );
    expect(statuses).toEqual(Object.fromEntries(Object.keys(tokens).map((name) => [name, 400])));
    expect(await statusesOf(user)).toEqual(OK);
  });

  test('is accepted in a form only, up to 16 KiB', async () => {
    const json = await harness.call('POST', LOGOUT, { body: { logout_token: 'x' } });
    expect(json.status).toBe(415);
    expect(await send('x'.repeat(17_000))).toBe(413);
  });
});

describe('with a provider that issues no refresh tokens', () => {
  let plain: OidcHarness;

  beforeAll(async () => {
    plain = await startOidcHarness({ oidcClaimAccounts: '' }, { hasRefreshTokens: false });
  });

  afterAll(() => plain.close());

  test('the access ends CONSOLE_SESSION_MAX_HOURS after the sign-in', async () => {
    const { subject, apiKey, headers } = await signedIn(plain);
    const { check_due_at: dueAt, checked_at: checkedAt } = await plain.identityOf(subject);
    expect(dueAt.getTime() - checkedAt.getTime()).toBe(24 * 3_600_000);
    await plain.makeDue(subject);
    expect((await plain.call('GET', '/api/v3/accounts', { token: apiKey })).status).toBe(401);
    expect((await plain.call('GET', SESSION, { headers })).status).toBe(401);
  });

  test('a logout token ends session and API key', async () => {
    const { subject, apiKey, headers } = await signedIn(plain);
    await plain.provider.logOut(subject);
    expect((await plain.call('GET', SESSION, { headers })).status).toBe(401);
    expect((await plain.call('GET', '/api/v3/accounts', { token: apiKey })).status).toBe(401);
  });

  test('a logout token of an earlier session ends that session only', async () => {
    const first = await signedIn(plain);
    const firstSid = plain.provider.sidOf(first.subject);
    const latest = await plain.signInAt(first.subject);
    const { issuer } = plain.provider;
    const token = await logoutToken({ iss: issuer, sub: first.subject, sid: firstSid }, { target: plain });
    expect(await send(token, plain)).toBe(200);
    expect((await plain.call('GET', SESSION, { headers: first.headers })).status).toBe(401);
    expect((await plain.call('GET', SESSION, { headers: latest.headers })).status).toBe(200);
    expect((await plain.call('GET', '/api/v3/accounts', { token: latest.apiKey })).status).toBe(200);
  });

  test('operators manage the memberships', async () => {
    const { subject, apiKey } = await signedIn(plain);
    const { user_id: userId } = await plain.identityOf(subject);
    const own = await plain.newAccount();
    await plain.database.prisma.membership.create({
      data: { userId, accountId: BigInt(own.id), license: 'developer', permissionSets: [] },
    });
    await plain.browse(subject, { browser: new SignInBrowser() });
    expect((await plain.call('GET', '/api/v3/accounts', { token: apiKey })).json.data).toHaveLength(1);
  });
});

/** Returns a token of the provider with these claims. */
async function logoutToken(
  claims: Record<string, unknown>,
  {
    key,
    alg = 'RS256',
    target = harness,
  }: { key?: CryptoKey | Uint8Array; alg?: string; target?: OidcHarness } = {},
): Promise<string> {
  const { issuer, clientId, signingKey } = target.provider;
  const seconds = Math.floor(Date.now() / 1_000);
  const payload = {
    iss: issuer,
    aud: clientId,
    iat: seconds,
    exp: seconds + 120,
    jti: 'x',
    events: EVENTS,
    ...claims,
  };
  return await new SignJWT(payload)
    .setProtectedHeader({ alg, kid: 'test', typ: 'logout+jwt' })
    .sign(key ?? (await importJWK(signingKey as never, 'RS256')));
}

async function send(token: string, target = harness): Promise<number> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams({ logout_token: token }).toString();
  return (await callApi(target.origin, 'POST', LOGOUT, { headers, body })).status;
}
