import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { verify } from '@node-rs/argon2';
import { INVALID_TEXT_PROBLEM } from '@runhook/contract';
import { createUser, inTransaction } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { eventually } from '@runhook/testing';
import { resetPassword } from '../../src/identity/users.ts';
import { createConsoleSessions } from '../../src/sessions/console-sessions.ts';
import { createPasswordCheck } from '../../src/sessions/password-check.ts';
import { createSignIn } from '../../src/sessions/sign-in.ts';
import type { SignInAttempt, SignInLimits } from '../../src/sessions/sign-in-limits.ts';
import {
  cookieOf,
  failure,
  type Harness,
  PASSWORD,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
  type TestUser,
} from '../harness.ts';

const SESSION = '/api/v3/session';
const INVALID = { status: 401, json: failure(401, 'Invalid token.') };
const REJECTED = { status: 401, json: failure(401, 'The e-mail address or the password is wrong.') };
const CROSS_ORIGIN = {
  status: 403,
  json: failure(403, 'Access denied: The request does not come from the console itself.'),
};

const UNLIMITED: SignInLimits = {
  countAttempt: async () => ({ kind: 'accepted', failures: 0 }),
  refundAttempt: async () => undefined,
  recordSuccess: async () => undefined,
};

let harness: Harness;
let account: TestAccount;
let user: TestUser;

beforeAll(async () => {
  harness = await startHarness({ trustedProxyCidrs: ['127.0.0.0/8'] });
  account = await harness.newAccount({ plan: 'team' });
});

beforeEach(async () => {
  user = await harness.newUser(account, 'developer', ['member']);
});

afterAll(() => harness.close());

const signIn = (fields: object, headers: Record<string, string> = {}) =>
  harness.call('POST', SESSION, { body: fields, headers });
const validFields = () => ({ email: user.email, password: PASSWORD });
const whoAmI = (headers: Record<string, string>) => harness.call('GET', SESSION, { headers });

async function sessionsOf({ id }: { id: number }) {
  return await harness.database.prisma.consoleSession.findMany({ where: { userId: BigInt(id) } });
}

/** Sets a time of the user's sessions to the past. */
async function backdate(column: 'last_used_at' | 'expires_at', minutes: number): Promise<void> {
  await harness.database.pool.query(
    `UPDATE console_sessions SET ${column} = now() - make_interval(mins => $2) WHERE user_id = $1`,
    [user.id, minutes],
  );
}

describe('signing in', () => {
  test('returns the user with accounts and permissions, and a cookie that scripts cannot read', async () => {
    // Times in responses have whole seconds.
    const beforeMs = Math.floor(Date.now() / 1_000) * 1_000;
    const { status, headers, json } = await signIn(validFields());
    const view = await whoAmI({ cookie: cookieOf(headers) });
    expect(status).toBe(201);
    expect(json).toEqual({
      data: {
        user_id: user.id,
        email: user.email,
        name: 'Ada',
        accounts: [
          {
            id: account.id,
            identifier: account.identifier,
            name: 'Acme',
            plan: 'team',
            deployment: 'multi_tenant',
            created_at: expect.any(String),
            license: 'developer',
            permission_sets: ['member'],
            webhooks_unavailable: null,
            may_write_webhooks: true,
          },
        ],
        expires_at: expect.any(String),
      },
      status: { code: 201 },
    });
    expect(view.json.data).toEqual(json.data);
    const createdAtMs = Date.parse(json.data.expires_at) - 24 * 3_600_000;
    expect(createdAtMs).toBeGreaterThanOrEqual(beforeMs);
    expect(createdAtMs).toBeLessThanOrEqual(Date.now());
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(/^runhook_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/),
      expect.stringMatching(/^runhook_device=[\w.-]+; Max-Age=15552000; Path=\/; HttpOnly; SameSite=Strict$/),
    ]);
  });

  test('marks its cookies Secure if a trusted proxy reports that the request came over https', async () => {
    const forwarded = { 'x-forwarded-proto': 'https' };
    const { headers } = await signIn(validFields(), forwarded);
    for (const cookie of headers.getSetCookie()) expect(cookie).toMatch(/; Secure$/);
    const untrusting = await harness.startSecond({ trustedProxyCidrs: [] });
    const otherResponse = await untrusting.call('POST', SESSION, { body: validFields(), headers: forwarded });
    expect(otherResponse.headers.get('set-cookie')).not.toMatch(/Secure/);
    await untrusting.close();
  });

  test('sets cookies that only this host can set if PUBLIC_URL is https, and ends a session of the earlier cookie', async () => {
    const https = await harness.startSecond({ publicUrl: 'https://runhook.example.com' });
    const before = await harness.signIn(user);
    expect((await https.call('GET', SESSION, { headers: before })).status).toBe(200);
    const { headers } = await https.call('POST', SESSION, { body: validFields(), headers: before });
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-runhook_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/),
      expect.stringMatching(/^__Host-runhook_device=[\w.-]+; Max-Age=15552000; Path=\/; .*; Secure$/),
      expect.stringMatching(/^runhook_session=; Max-Age=0; Path=\/; .*; Secure$/),
      expect.stringMatching(/^runhook_device=; Max-Age=0; Path=\/; .*; Secure$/),
    ]);
    expect(await whoAmI(before)).toMatchObject(INVALID);
    const own = { 'sec-fetch-site': 'same-origin', cookie: `runhook_session=other; ${cookieOf(headers)}` };
    expect((await https.call('GET', SESSION, { headers: own })).status).toBe(200);
    const signedOut = await https.call('DELETE', SESSION, { headers: own });
    expect(signedOut.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-runhook_session=; Max-Age=0; .*; Secure$/),
      expect.stringMatching(/^runhook_session=; Max-Age=0; .*; Secure$/),
    ]);
    expect(await sessionsOf(user)).toEqual([]);
    await https.close();
  });

  test('has no prefix in the names of cookies and no Secure if PUBLIC_URL is http', async () => {
    const http = await harness.startSecond({ publicUrl: 'http://runhook.example.com' });
    const { headers } = await http.call('POST', SESSION, { body: validFields() });
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(/^runhook_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/),
      expect.stringMatching(/^runhook_device=/),
    ]);
    await http.close();
  });

  test('ignores the case of the e-mail address and unknown fields', async () => {
    const fields = { email: ` ${user.email.toUpperCase()} `, password: PASSWORD, id: '' };
    expect((await signIn(fields)).status).toBe(201);
  });

  test('stores only the SHA-256 of the session id', async () => {
    const { headers } = await signIn(validFields());
    const id = cookieOf(headers).split('=')[1] ?? '';
    const [session] = await sessionsOf(user);
    expect(Buffer.from(session?.idHash ?? [])).toEqual(createHash('sha256').update(id).digest());
  });

  test('ends the previous session of the browser', async () => {
    const firstSession = await harness.signIn(user);
    const { headers } = await signIn(validFields(), { cookie: firstSession.cookie ?? '' });
    expect(await whoAmI(firstSession)).toMatchObject(INVALID);
    expect((await whoAmI({ cookie: cookieOf(headers) })).status).toBe(200);
  });

  test('is rejected in the same way for a wrong password, an unknown e-mail address, and a user without a password', async () => {
    const userWithoutPermissions = await harness.newUser(account, 'it', []);
    await harness.database.prisma.user.update({
      where: { id: BigInt(userWithoutPermissions.id) },
      data: { passwordHash: null },
    });
    const attempts = [
      { email: user.email, password: `${PASSWORD} ` },
      { email: user.email, password: user.apiKey },
      { email: 'nobody@example.com', password: PASSWORD },
      { email: userWithoutPermissions.email, password: PASSWORD },
    ];
    for (const attempt of attempts) {
      const response = await signIn(attempt);
      expect(response).toMatchObject(REJECTED);
      expect(response.headers.get('set-cookie')).toBeNull();
    }
  });

  test('is rejected when the password was reset while it was being checked', async () => {
    const { prisma } = harness.database;
    const sessions = createConsoleSessions({ prisma, idleMinutes: 60, maxHours: 24 });
    const where = { id: BigInt(user.id) };
    const { passwordHash } = await prisma.user.findUniqueOrThrow({ where });
    const checked = { id: user.id, passwordHash: passwordHash ?? '' };
    expect(await sessions.open(checked, async () => undefined)).toEqual(expect.any(String));
    await prisma.user.update({ where, data: { passwordHash: 'another' } });
    expect(await sessions.open(checked, async () => undefined)).toBeNull();
    expect(await sessionsOf(user)).toHaveLength(1);
  });

  test.each(['before', 'after'])(
    'leaves no session when it locks the row of the user just %s a concurrent reset of the password',
    async (order) => {
      const database = openPrismaDatabase({ url: harness.settings.databaseUrl, connectionsMax: 4 });
      const { prisma, pool } = database;
      const sessions = createConsoleSessions({ prisma, idleMinutes: 60, maxHours: 24 });
      const { passwordHash } = await prisma.user.findUniqueOrThrow({ where: { id: BigInt(user.id) } });
      const opens = () =>
        sessions.open({ id: user.id, passwordHash: passwordHash ?? '' }, async () => undefined);
      const resets = () => resetPassword(prisma, user.id, 'another password');
      // Each statement waits for the user's row and gets it in the order in which it started.
      const countWaiting = (count: number) =>
        eventually(async () => {
          const locks = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
          expect((await pool.query(locks)).rows).toHaveLength(count);
        });
      const pending: Promise<unknown>[] = [];
      await inTransaction(pool, async (transaction) => {
        await transaction.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [user.id]);
        pending.push(order === 'before' ? opens() : resets());
        await countWaiting(1);
        pending.push(order === 'before' ? resets() : opens());
        await countWaiting(2);
      });
      const [firstSession, second] = await Promise.all(pending);
      await database.close();
      if (order === 'before')
        expect([firstSession, second]).toEqual([expect.any(String), { sessionsEnded: 1 }]);
      else expect([firstSession, second]).toEqual([{ sessionsEnded: 0 }, null]);
      expect(await sessionsOf(user)).toEqual([]);
    },
  );

  test('does the same work for an unknown e-mail address as for a wrong password', async () => {
    const { prisma } = harness.database;
    // This user has a hash with the parameters of the product; those of the harness have a cheaper one.
    const email = 'stored@example.com';
    await createUser(prisma, harness.secrets, { email, name: 'Ada', password: PASSWORD });
    const verified: string[] = [];
    const passwords = createPasswordCheck((passwordHash, password) => {
      verified.push(passwordHash);
      return verify(passwordHash, password);
    });
    const reasons: string[] = [];
    const attempt = createSignIn({
      prisma,
      sessions: { open: async () => null },
      passwords,
      limits: UNLIMITED,
      onFailure: ({ reason }) => void reasons.push(reason),
    });
    for (const address of [email, 'nobody@example.com']) {
      const fields = { email: address, password: 'wrong', clientAddress: '127.0.0.1', device: null };
      expect(await attempt(fields, async () => undefined)).toEqual({ kind: 'rejected' });
    }
    // The parts before the salt determine the cost: algorithm, version, memory and passes.
    const [existingUserParameters, unknownUserParameters] = verified.map((passwordHash) =>
      passwordHash.split('$').slice(1, 4),
    );
    expect(unknownUserParameters).toEqual(existingUserParameters);
    expect(verified).toHaveLength(2);
    expect(reasons).toEqual(['wrong_password', 'unknown_email']);
  });

  test('does not count an attempt whose password was not checked, and checks none beyond a limit', async () => {
    const { prisma } = harness.database;
    const refunded: string[] = [];
    const reasons: string[] = [];
    const limits = {
      ...UNLIMITED,
      refundAttempt: async ({ clientAddress }: SignInAttempt) => void refunded.push(clientAddress),
    };
    const rejected = { kind: 'rejected', retryAfterSeconds: 5 } as const;
    const attemptWith = (limitsUsed: SignInLimits) =>
      createSignIn({
        prisma,
        sessions: { open: async () => null },
        passwords: { acquireSlot: async () => null },
        limits: limitsUsed,
        onFailure: ({ reason }) => void reasons.push(reason),
      })(
        { email: user.email, password: PASSWORD, clientAddress: '192.0.2.1', device: null },
        async () => undefined,
      );
    expect(await attemptWith(limits)).toEqual({ kind: 'busy' });
    expect(refunded).toEqual(['192.0.2.1']);
    expect(await attemptWith({ ...limits, countAttempt: async () => rejected })).toEqual({
      kind: 'limited',
      retryAfterSeconds: 5,
    });
    expect(refunded).toHaveLength(1);
    expect(reasons).toEqual(['busy', 'limited']);
  });

  test('rejects invalid fields by name and does not repeat their values', async () => {
    const cases: [unknown, string[]][] = [
      [{}, ['email: is required', 'password: is required']],
      [{ email: 5, password: [] }, ['email: must be a string', 'password: must be a string']],
      [{ email: 'a\0b', password: PASSWORD }, [`email: ${INVALID_TEXT_PROBLEM}`]],
      [
        { email: '', password: '' },
        ['email: is not allowed to be empty', 'password: is not allowed to be empty'],
      ],
      [[], ['body: must be of type object']],
    ];
    for (const [fields, lines] of cases) {
      const { status, json } = await signIn(fields as object);
      expect({ status, actual: json.status.developer_message.split('\n') }).toEqual({
        status: 400,
        actual: lines,
      });
    }
    const long = await signIn({ email: user.email, password: 'x'.repeat(1_025) });
    expect(long.status).toBe(400);
    expect(long.json.status.developer_message).not.toMatch(/xxx/);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const sent = await harness.call('POST', SESSION, { body: 'email=a&password=b', headers: form });
    expect(sent.status).toBe(415);
  });
});

describe('a session', () => {
  test('has the permissions of its user and the same responses as the API key', async () => {
    const headers = await harness.signIn(user);
    const created = await harness.call('POST', account.path('/subscriptions'), {
      headers,
      body: SUBSCRIPTION_FIELDS,
    });
    expect(created.status).toBe(201);
    for (const path of [account.path('/subscriptions'), `/api/v2/accounts/${account.id}/jobs/`]) {
      const bySession = await harness.call('GET', path, { headers });
      const byKey = await harness.call('GET', path, { token: user.apiKey });
      expect(bySession.status).toBe(200);
      expect(bySession.json).toEqual(byKey.json);
    }
    const foreign = await harness.newAccount();
    const { status, json } = await harness.call('GET', foreign.path('/subscriptions'), { headers });
    expect({ status, json }).toEqual({
      status: 403,
      json: failure(403, 'Access denied: Token is not scoped to account.'),
    });
  });

  test('ends on the server when it is signed out, while other sessions of the user continue', async () => {
    const [currentSession, otherSession] = [await harness.signIn(user), await harness.signIn(user)];
    const { status, headers, json } = await harness.call('DELETE', SESSION, { headers: currentSession });
    expect({ status, json }).toEqual({
      status: 200,
      json: { data: {}, status: { code: 200, is_success: true } },
    });
    expect(headers.get('set-cookie')).toMatch(/^runhook_session=; Max-Age=0; Path=\/; HttpOnly/);
    expect(await whoAmI(currentSession)).toMatchObject(INVALID);
    expect(await harness.call('DELETE', SESSION, { headers: currentSession })).toMatchObject(INVALID);
    expect((await whoAmI(otherSession)).status).toBe(200);
    expect(await sessionsOf(user)).toHaveLength(1);
  });

  test('ends after an hour without use', async () => {
    const headers = await harness.signIn(user);
    await backdate('last_used_at', 59);
    expect((await whoAmI(headers)).status).toBe(200);
    await backdate('last_used_at', 60);
    expect(await whoAmI(headers)).toMatchObject(INVALID);
  });

  test('ends at its maximum age although it is in use', async () => {
    const headers = await harness.signIn(user);
    await backdate('expires_at', 0);
    expect(await whoAmI(headers)).toMatchObject(INVALID);
  });

  test('is updated at most once a minute, however often it is used', async () => {
    const headers = await harness.signIn(user);
    const lastUsed = async () => (await sessionsOf(user))[0]?.lastUsedAt.getTime() ?? 0;
    const openedAt = await lastUsed();
    await Promise.all(Array.from({ length: 5 }, () => whoAmI(headers)));
    expect(await lastUsed()).toBe(openedAt);
    await backdate('last_used_at', 2);
    await Promise.all(Array.from({ length: 5 }, () => whoAmI(headers)));
    const usedAt = await lastUsed();
    expect(usedAt).toBeGreaterThanOrEqual(openedAt);
    await whoAmI(headers);
    expect(await lastUsed()).toBe(usedAt);
  });

  test('is removed after its end when any user signs in', async () => {
    await harness.signIn(user);
    await backdate('expires_at', 1);
    const otherResponse = await harness.newUser(account, 'it', []);
    await harness.signIn(otherResponse);
    expect(await sessionsOf(user)).toEqual([]);
    expect(await sessionsOf(otherResponse)).toHaveLength(1);
  });

  test('is not found for an invalid cookie', async () => {
    const { cookie = '' } = await harness.signIn(user);
    const id = cookie.split('=')[1] ?? '';
    for (const wrong of [
      '',
      'runhook_session=',
      'runhook_session',
      `other=${id}`,
      `runhook_session=${id.slice(1)}`,
      `runhook_session=${'A'.repeat(43)}`,
      `runhook_session=${user.apiKey}`,
      `Runhook_Session=${id}`,
    ]) {
      expect(await whoAmI({ cookie: wrong })).toMatchObject(INVALID);
    }
    expect((await whoAmI({ cookie: `a=b; ${cookie}; c=d` })).status).toBe(200);
  });

  test('is ignored if the request has an Authorization header, even an invalid one', async () => {
    const headers = await harness.signIn(user);
    const otherResponse = await harness.newUser(account, 'it', []);
    const bothResponse = await whoAmI({ ...headers, authorization: `Token ${otherResponse.apiKey}` });
    expect(bothResponse.json.data).toMatchObject({ user_id: otherResponse.id, expires_at: null });
    expect(await whoAmI({ ...headers, authorization: 'Token x' })).toMatchObject(INVALID);
    expect(await whoAmI({ ...headers, authorization: '' })).toMatchObject(INVALID);
  });
});

describe('a request with a session cookie', () => {
  test('is rejected if it changes something and does not come from the console’s own origin', async () => {
    const { cookie = '' } = await harness.signIn(user);
    const { id } = await harness.newSubscription(account);
    const beforeMs = await harness.rowCounts();
    const requests = [
      ['POST', account.path('/subscriptions')],
      ['PUT', account.path(`/subscription/${id}`)],
      ['DELETE', account.path(`/subscription/${id}`)],
      ['GET', account.path(`/subscription/${id}/test`)],
      ['HEAD', account.path(`/subscription/${id}/test`)],
      ['POST', account.path(`/subscription/${id}/delivery/wdl_x/redeliver`)],
      ['POST', account.path(`/subscription/${id}/recover`)],
      ['POST', `/api/v2/accounts/${account.id}/jobs/`],
      ['POST', `/api/v2/users/${user.id}/apikey/`],
      ['DELETE', SESSION],
    ] as const;
    const proofs = [{}, { 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example.com' }];
    for (const [method, path] of requests) {
      for (const proof of proofs) {
        const headers: Record<string, string> = { cookie, ...proof };
        const response = await harness.call(method, path, { headers });
        expect(response).toMatchObject(method === 'HEAD' ? { status: 403 } : CROSS_ORIGIN);
      }
    }
    expect(await harness.rowCounts()).toEqual(beforeMs);
    expect((await whoAmI({ cookie })).status).toBe(200);
  });

  test('is accepted if its Origin is the console’s own', async () => {
    const { cookie = '' } = await harness.signIn(user);
    const headers = { cookie, origin: harness.origin };
    const response = await harness.call('POST', account.path('/subscriptions'), {
      headers,
      body: SUBSCRIPTION_FIELDS,
    });
    expect(response.status).toBe(201);
  });

  test('needs no proof of its origin to read, and a request with a key never needs one', async () => {
    const { cookie = '' } = await harness.signIn(user);
    const read = await harness.call('GET', account.path('/subscriptions'), { headers: { cookie } });
    expect(read.status).toBe(200);
    const headers = { authorization: `Token ${user.apiKey}`, cookie, 'sec-fetch-site': 'cross-site' };
    const written = await harness.call('POST', account.path('/subscriptions'), {
      headers,
      body: SUBSCRIPTION_FIELDS,
    });
    expect(written.status).toBe(201);
  });
});

describe('the current session', () => {
  test('is returned for an API key, too, but not for a service token', async () => {
    const byKey = await harness.call('GET', SESSION, { token: user.apiKey });
    expect(byKey.json.data).toMatchObject({ user_id: user.id, email: user.email, expires_at: null });
    for (const path of [SESSION, '/api/v3/profile']) {
      const { status, json } = await harness.call('GET', path, { token: account.token });
      expect({ status, json }).toEqual({
        status: 403,
        json: failure(403, 'Access denied: A service token is not a user.'),
      });
    }
    const signOut = await harness.call('DELETE', SESSION, { token: user.apiKey });
    expect(signOut.json).toEqual(failure(403, 'Access denied: A key is not signed in.'));
  });

  test('has the permissions of the user in each account', async () => {
    const free = await harness.newAccount({ plan: 'free' });
    const apart = await harness.newAccount({ plan: 'enterprise', deployment: 'single_tenant_private' });
    const enterprise = await harness.newAccount({ plan: 'enterprise' });
    for (const { id } of [enterprise, apart, free]) {
      const membership = { license: 'developer', permissionSets: ['member'] };
      await harness.database.prisma.membership.create({
        data: { accountId: BigInt(id), userId: BigInt(user.id), ...membership },
      });
    }
    const { json } = await harness.call('GET', SESSION, { token: user.apiKey });
    type Entry = { id: number; webhooks_unavailable: string | null; may_write_webhooks: boolean };
    const actual = json.data.accounts.map(({ id, webhooks_unavailable, may_write_webhooks }: Entry) => ({
      id,
      webhooks_unavailable,
      may_write_webhooks,
    }));
    expect(actual).toEqual([
      { id: account.id, webhooks_unavailable: null, may_write_webhooks: true },
      { id: free.id, webhooks_unavailable: 'plan', may_write_webhooks: false },
      { id: apart.id, webhooks_unavailable: 'deployment', may_write_webhooks: false },
      { id: enterprise.id, webhooks_unavailable: null, may_write_webhooks: false },
    ]);
  });
});

describe('the profile', () => {
  test('shows the API key only to its own user, with a session or that key', async () => {
    const expected = { user_id: user.id, email: user.email, name: 'Ada', api_key: user.apiKey };
    const headers = await harness.signIn(user);
    for (const caller of [{ headers }, { token: user.apiKey }]) {
      const { status, json } = await harness.call('GET', '/api/v3/profile', caller);
      expect({ status, json }).toEqual({ status: 200, json: { data: expected, status: { code: 200 } } });
    }
    expect(await harness.call('GET', '/api/v3/profile')).toMatchObject(INVALID);
  });
});
