import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { addMembership, hashCredential } from '@runhook/database';
import { eventually } from '@runhook/testing';
import { removeMembership, updateAccount } from '../src/identity/administration.ts';
import { removeUser } from '../src/identity/users.ts';
import {
  failure,
  type Harness,
  type SecondManagement,
  startHarness,
  type TestAccount,
  type TestUser,
} from './harness.ts';

// Limits that processes share are tested in rate-limits.test.ts and sign-in-limits.test.ts.

const INVALID = { status: 401, json: failure(401, 'Invalid token.') };

let first: Harness;
let second: SecondManagement;
let account: TestAccount;
let user: TestUser;

beforeAll(async () => {
  first = await startHarness();
  second = await first.startSecond();
  account = await first.newAccount();
  user = await first.newUser(account, 'developer', []);
});

afterAll(async () => {
  await second.close();
  await first.close();
});

const SESSION = '/api/v3/session';
const list = (call: Harness['call'], token: string) => call('GET', account.path('/subscriptions'), { token });

describe('another process of management immediately applies', () => {
  test('a sign-in and a sign-out', async () => {
    const headers = await first.signIn(user);
    expect((await second.call('GET', SESSION, { headers })).status).toBe(200);
    expect((await second.call('DELETE', SESSION, { headers })).status).toBe(200);
    expect(await first.call('GET', SESSION, { headers })).toMatchObject(INVALID);
  });

  test('the rotation of an API key', async () => {
    let key = user.apiKey;
    for (const [call, otherProcess] of [
      [first.call, second.call],
      [second.call, first.call],
    ] as const) {
      expect((await list(otherProcess, key)).status).toBe(200);
      const { json } = await call('POST', `/api/v2/users/${user.id}/apikey/`, { token: key });
      expect(await list(otherProcess, key)).toMatchObject(INVALID);
      key = json.data.api_key;
      expect((await list(otherProcess, key)).status).toBe(200);
    }
  });

  test('one of two concurrent rotations of an API key, and rejects the other with a 401', async () => {
    const user2 = await first.newUser(account, 'it', []);
    const responses = await Promise.all(
      [first.call, second.call].map((call) =>
        call('POST', `/api/v2/users/${user2.id}/apikey/`, { token: user2.apiKey }),
      ),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test('the end of a service token that is revoked or expired', async () => {
    const token = await first.newToken(account, ['account_admin']);
    for (const change of [{ revokedAt: new Date() }, { revokedAt: null, expiresAt: new Date() }]) {
      await first.database.prisma.serviceToken.update({
        where: { tokenHash: hashCredential(token) },
        data: { revokedAt: null, expiresAt: null },
      });
      for (const { call } of [first, second]) expect((await list(call, token)).status).toBe(200);
      await first.database.prisma.serviceToken.update({
        where: { tokenHash: hashCredential(token) },
        data: change,
      });
      for (const { call } of [first, second]) expect(await list(call, token)).toMatchObject(INVALID);
    }
  });
});

describe('a stream of changes ends in every process', () => {
  const abort = new AbortController();
  /** Names of the streams that have ended, with their process. */
  const ended: string[] = [];

  afterAll(() => abort.abort());

  /** Opens a stream in each process. */
  async function listen(name: string, of: TestAccount, credential: { token: string } | { cookie: string }) {
    const headers: Record<string, string> =
      'token' in credential ? { authorization: `Token ${credential.token}` } : credential;
    for (const [index, { origin }] of [first, second].entries()) {
      const response = await fetch(origin + of.path('/changes'), { headers, signal: abort.signal });
      expect(response.status).toBe(200);
      void response.text().then(
        () => ended.push(`${name} ${index + 1}`),
        () => undefined,
      );
    }
  }

  test('when its caller loses access, and no other stream', async () => {
    const { prisma } = first.database;
    const other = await first.newAccount();
    const newUser = () => first.newUser(account, 'developer', []);
    const [revoked, expired] = await Promise.all([0, 1].map(() => first.newToken(account, ['read_only'])));
    const [rotated, removedMember, removedUser, signedOut] = await Promise.all([
      newUser(),
      newUser(),
      newUser(),
      newUser(),
    ]);
    const elsewhere = { accountId: other.id, userId: removedMember.id, license: 'it' as const };
    await addMembership(prisma, { ...elsewhere, permissionSets: [] });
    const session = await first.signIn(signedOut);
    const downgraded = await first.newAccount();

    await listen('unchanged token', account, { token: account.token });
    await listen('unchanged member', other, { token: removedMember.apiKey });
    await listen('unchanged session', account, { cookie: (await first.signIn(signedOut)).cookie ?? '' });
    await listen('revoked token', account, { token: revoked ?? '' });
    await listen('expired token', account, { token: expired ?? '' });
    await listen('rotated key', account, { token: rotated.apiKey });
    await listen('removed member', account, { token: removedMember.apiKey });
    await listen('removed user', account, { token: removedUser.apiKey });
    await listen('ended session', account, { cookie: session.cookie ?? '' });
    await listen('account without webhooks', downgraded, { token: downgraded.token });

    const change = async (token: string | undefined, data: { revokedAt: Date } | { expiresAt: Date }) =>
      await prisma.serviceToken.update({ where: { tokenHash: hashCredential(token ?? '') }, data });
    await change(revoked, { revokedAt: new Date() });
    await change(expired, { expiresAt: new Date() });
    const rotation = `/api/v2/users/${rotated.id}/apikey/`;
    expect((await second.call('POST', rotation, { token: rotated.apiKey })).status).toBe(200);
    await removeMembership(prisma, { accountId: account.id, userId: removedMember.id });
    await removeUser(prisma, removedUser.id);
    expect((await first.call('DELETE', SESSION, { headers: session })).status).toBe(200);
    await updateAccount(prisma, downgraded.id, { plan: 'free' });

    const names = [
      'account without webhooks',
      'ended session',
      'expired token',
      'removed member',
      'removed user',
      'revoked token',
      'rotated key',
    ];
    const expected = names.flatMap((name) => [`${name} 1`, `${name} 2`]);
    await eventually(() => expect([...ended].sort()).toEqual(expected));
  });
});
