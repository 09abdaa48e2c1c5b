import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { verify } from '@node-rs/argon2';
import {
  failure,
  type Harness,
  PASSWORD,
  startHarness,
  type TestAccount,
  type TestUser,
} from '../harness.ts';

const SESSION = '/api/v3/session';
const SESSIONS = '/api/v3/profile/sessions';
const PASSWORD_PATH = '/api/v3/profile/password';
const NEW_PASSWORD = 'another pass phrase';
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const NO_SESSION = { status: 403, json: failure(403, 'Access denied: A key is not signed in.') };

let harness: Harness;
let account: TestAccount;
let user: TestUser;
let session: Record<string, string>;

beforeAll(async () => {
  harness = await startHarness({ signInAttemptsPerEmail: 3 });
  account = await harness.newAccount();
});

beforeEach(async () => {
  user = await harness.newUser(account, 'developer', ['admin']);
  session = await harness.signIn(user);
});

afterAll(() => harness.close());

const list = (headers = session) => harness.call('GET', SESSIONS, { headers });
const statusOf = async (headers: Record<string, string>) =>
  (await harness.call('GET', SESSION, { headers })).status;
const changePassword = (body: object, headers = session) =>
  harness.call('PUT', PASSWORD_PATH, { headers, body });

/** Returns action and details of the latest entries about the user, newest first. */
async function auditEntries(limit: number) {
  const where = { accountId: BigInt(account.id), targetId: String(user.id) };
  const entries = await harness.database.prisma.auditEntry.findMany({
    where,
    orderBy: { id: 'desc' },
    take: limit,
  });
  for (const { actorName } of entries) expect(actorName).toBe(user.email);
  return entries.map(({ action, details }) => [action, details]);
}

describe('the sessions of a user', () => {
  test('are listed with address, browser, times, and the current one, and without those of others', async () => {
    const credentials = { email: user.email, password: PASSWORD };
    await harness.call('POST', SESSION, { body: credentials, headers: { 'user-agent': FIREFOX } });
    await harness.signIn(await harness.newUser(account, 'developer', []));
    const { status, json } = await list();
    expect(status).toBe(200);
    expect(json.extra.pagination).toEqual({ total_count: 2, count: 2 });
    const view = {
      id: expect.stringMatching(/^[0-9a-f]{64}$/),
      created_at: expect.any(String),
      last_used_at: expect.any(String),
      expires_at: expect.any(String),
      client_address: '127.0.0.1',
    };
    expect(json.data).toHaveLength(2);
    expect(json.data).toEqual(
      expect.arrayContaining([
        { ...view, browser: null, is_current: true },
        { ...view, browser: 'Firefox on Linux', is_current: false },
      ]),
    );
  });

  test('are not listed once they have ended', async () => {
    await harness.signIn(user);
    await harness.database.pool.query(
      `UPDATE console_sessions SET last_used_at = now() - interval '61 minutes'
       WHERE user_id = $1 AND id_hash <> decode($2, 'hex')`,
      [user.id, (await list()).json.data.find(({ is_current }: { is_current: boolean }) => is_current).id],
    );
    expect((await list()).json.data).toHaveLength(1);
  });

  test('end one by one, and the browser of the current one loses its cookie', async () => {
    const other = await harness.signIn(user);
    const idOf = async (headers: Record<string, string>) =>
      (await list(headers)).json.data.find(({ is_current }: { is_current: boolean }) => is_current).id;
    const ended = await harness.call('DELETE', `${SESSIONS}/${await idOf(other)}`, { headers: session });
    expect(ended).toMatchObject({ status: 200, json: { data: {}, status: { is_success: true } } });
    expect(ended.headers.get('set-cookie')).toBeNull();
    expect([await statusOf(other), await statusOf(session)]).toEqual([401, 200]);
    const details = { address: '127.0.0.1', sessions: 1 };
    expect(await auditEntries(1)).toEqual([['session.ended', details]]);

    const own = await harness.call('DELETE', `${SESSIONS}/${await idOf(session)}`, { headers: session });
    expect(own.headers.get('set-cookie')).toMatch(/session=; Max-Age=0/);
    expect(await statusOf(session)).toBe(401);
  });

  test('cannot be ended by another user, and an unknown id is a 404', async () => {
    const other = await harness.signIn(await harness.newUser(account, 'developer', ['admin']));
    const [{ id }] = (await list()).json.data;
    for (const path of [`${SESSIONS}/${id}`, `${SESSIONS}/${'0'.repeat(64)}`, `${SESSIONS}/x`])
      expect((await harness.call('DELETE', path, { headers: other })).status).toBe(404);
    expect(await statusOf(session)).toBe(200);
  });

  test('end together when the user signs out everywhere', async () => {
    const others = [await harness.signIn(user), await harness.signIn(user)];
    const unrelated = await harness.signIn(await harness.newUser(account, 'developer', []));
    const { status, headers } = await harness.call('DELETE', SESSIONS, { headers: session });
    expect(status).toBe(200);
    expect(headers.get('set-cookie')).toMatch(/session=; Max-Age=0/);
    for (const ended of [session, ...others]) expect(await statusOf(ended)).toBe(401);
    expect(await statusOf(unrelated)).toBe(200);
    expect(await auditEntries(1)).toEqual([['session.ended', { address: '127.0.0.1', sessions: 3 }]]);
  });
});

describe('a change of the password', () => {
  const fields = { current_password: PASSWORD, new_password: NEW_PASSWORD };
  const hashOf = async () =>
    (await harness.database.prisma.user.findUniqueOrThrow({ where: { id: BigInt(user.id) } })).passwordHash ??
    '';

  test('ends the other sessions, keeps the API key, and is in the audit log', async () => {
    const other = await harness.signIn(user);
    const { status, json } = await changePassword(fields);
    expect({ status, data: json.data }).toEqual({ status: 200, data: { sessions_ended: 1 } });
    expect([await statusOf(session), await statusOf(other)]).toEqual([200, 401]);
    expect(await verify(await hashOf(), NEW_PASSWORD)).toBe(true);
    expect((await harness.call('GET', '/api/v3/profile', { token: user.apiKey })).status).toBe(200);
    expect(await auditEntries(2)).toEqual([
      ['session.ended', { address: '127.0.0.1', sessions: 1 }],
      ['password.changed', { address: '127.0.0.1' }],
    ]);
    const signIn = (password: string) =>
      harness.call('POST', SESSION, { body: { email: user.email, password } });
    expect((await signIn(PASSWORD)).status).toBe(401);
    expect((await signIn(NEW_PASSWORD)).status).toBe(201);
  });

  test('needs the current password, and the limit of failed sign-ins applies', async () => {
    const before = await hashOf();
    const wrong = { ...fields, current_password: 'wrong' };
    const rejected = await changePassword(wrong);
    expect(rejected.status).toBe(400);
    expect(rejected.json.status.errors).toEqual([
      { field: 'current_password', message: 'is not your current password' },
    ]);
    for (let attempts = 1; attempts < 3; attempts += 1) await changePassword(wrong);
    const limited = await changePassword(fields);
    expect(limited.status).toBe(429);
    expect(limited.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await hashOf()).toBe(before);
  });

  test('needs a new password that an operator could set', async () => {
    const problemOf = async (new_password: unknown) =>
      (await changePassword({ ...fields, new_password })).json.status.errors;
    const field = 'new_password';
    expect(await problemOf('seven77')).toEqual([{ field, message: 'must have 8 to 1000 characters' }]);
    expect(await problemOf('x'.repeat(1_001))).toEqual([
      { field, message: 'must have 8 to 1000 characters' },
    ]);
    expect(await problemOf('two\nlines of text')).toEqual([
      { field, message: 'must be one line without control characters' },
    ]);
    expect(await problemOf(5)).toEqual([{ field, message: 'must be a string' }]);
    expect((await changePassword({ ...fields, new_password: '🔑'.repeat(1_000) })).status).toBe(200);
  });

  test('is a conflict for a user without a password', async () => {
    await harness.database.prisma.user.update({
      where: { id: BigInt(user.id) },
      data: { passwordHash: null },
    });
    const { status, json } = await changePassword(fields);
    expect({ status, json }).toEqual({
      status: 409,
      json: failure(409, 'You have no password: you sign in without one.'),
    });
  });
});

test('a key cannot manage the sessions and the password of its user, and pages of others cannot change them', async () => {
  const body = { current_password: PASSWORD, new_password: NEW_PASSWORD };
  for (const [method, path] of [
    ['GET', SESSIONS],
    ['DELETE', SESSIONS],
    ['DELETE', `${SESSIONS}/${'0'.repeat(64)}`],
    ['PUT', PASSWORD_PATH],
  ] as const) {
    const parts = method === 'PUT' ? { body } : {};
    expect(await harness.call(method, path, { token: user.apiKey, ...parts })).toMatchObject(NO_SESSION);
    if (method === 'GET') continue;
    const headers = { cookie: session.cookie ?? '', 'sec-fetch-site': 'cross-site' };
    expect((await harness.call(method, path, { headers, ...parts })).status).toBe(403);
  }
  expect(await statusOf(session)).toBe(200);
});
