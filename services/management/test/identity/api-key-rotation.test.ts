import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createCredential, credentialKind, hashCredential } from '@runhook/database';
import { failure, type Harness, startHarness, type TestAccount, type TestUser } from '../harness.ts';
import { V2_STATUS } from '../v2-status.ts';

const INVALID = { status: 401, json: failure(401, 'Invalid token.') };

let harness: Harness;
let account: TestAccount;
let user: TestUser;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});

beforeEach(async () => {
  user = await harness.newUser(account, 'developer', ['developer']);
});

afterAll(() => harness.close());

const pathOf = (userId: number | string) => `/api/v2/users/${userId}/apikey/`;
const rotate = (token: string, userId: number | string = user.id) =>
  harness.call('POST', pathOf(userId), { token });
const list = (token: string) => harness.call('GET', account.path('/subscriptions'), { token });

async function storedUser(id: number) {
  return await harness.database.prisma.user.findUniqueOrThrow({ where: { id: BigInt(id) } });
}

describe('rotating one’s own API key', () => {
  test('returns the new key, which works at once, and invalidates the old one', async () => {
    const userBefore = await storedUser(user.id);
    const { status, json } = await rotate(user.apiKey);
    const { api_key: apiKey } = json.data;
    expect({ status, json }).toEqual({
      status: 200,
      json: { data: { user_id: user.id, api_key: apiKey }, status: { code: 200, ...V2_STATUS } },
    });
    expect(credentialKind(apiKey)).toBe('user');
    expect(await list(user.apiKey)).toMatchObject(INVALID);
    expect(await rotate(user.apiKey)).toMatchObject(INVALID);
    expect((await list(apiKey)).status).toBe(200);

    const userAfter = await storedUser(user.id);
    expect(Buffer.from(userAfter.apiKeyHash)).toEqual(Buffer.from(hashCredential(apiKey)));
    expect(harness.secrets.decrypt(userAfter.apiKeyCiphertext)).toBe(apiKey);
    expect(userAfter.apiKeyCreatedAt.getTime()).toBeGreaterThan(userBefore.apiKeyCreatedAt.getTime());
  });

  test('works with Bearer, without a trailing slash, with a superfluous body, and repeatedly', async () => {
    let key = user.apiKey;
    for (let times = 0; times < 3; times++) {
      const headers = { authorization: `Bearer ${key}` };
      const path = `/api/v2/users/${user.id}/apikey`;
      const { status, json } = await harness.call('POST', path, { headers, body: { user_id: 5 } });
      expect(status).toBe(200);
      expect(json.data.api_key).not.toBe(key);
      key = json.data.api_key;
    }
    expect((await list(key)).status).toBe(200);
  });

  test('does not change the keys of other users', async () => {
    const otherUser = await harness.newUser(account, 'it', []);
    await rotate(user.apiKey);
    expect((await list(otherUser.apiKey)).status).toBe(200);
  });

  test('gives one of two concurrent calls with the same key the new key and the other a 401', async () => {
    for (let round = 0; round < 5; round++) {
      const user2 = await harness.newUser(account, 'it', []);
      const responses = await Promise.all([rotate(user2.apiKey, user2.id), rotate(user2.apiKey, user2.id)]);
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 401]);
      expect(responses.find(({ status }) => status === 401)).toMatchObject(INVALID);
      const apiKey = responses.find(({ status }) => status === 200)?.json.data.api_key;
      expect((await list(apiKey)).status).toBe(200);
      expect(await list(user2.apiKey)).toMatchObject(INVALID);
    }
  });

  test('works from the user’s console session, which stays valid', async () => {
    const headers = await harness.signIn(user);
    const { status, json } = await harness.call('POST', pathOf(user.id), { headers });
    expect(status).toBe(200);
    expect(await list(user.apiKey)).toMatchObject(INVALID);
    expect((await list(json.data.api_key)).status).toBe(200);
    const profile = await harness.call('GET', '/api/v3/profile', { headers });
    expect(profile.json.data.api_key).toBe(json.data.api_key);
  });

  test('leaves one valid key after concurrent calls by key and from sessions, and one caller has it', async () => {
    const headers = await harness.signIn(user);
    const bySession = () => harness.call('POST', pathOf(user.id), { headers });
    const responses = await Promise.all([bySession(), bySession(), rotate(user.apiKey), bySession()]);
    const newKeys = responses.filter(({ status }) => status === 200).map(({ json }) => json.data.api_key);
    for (const { status } of responses) expect([200, 401, 409]).toContain(status);
    expect(newKeys.length).toBeGreaterThan(0);
    const statusesByKey = await Promise.all(
      [user.apiKey, ...newKeys].map(async (key) => (await list(key)).status),
    );
    expect(statusesByKey.filter((status) => status === 200)).toHaveLength(1);
  });

  test('from a console session requires a request of the console’s own origin', async () => {
    const { cookie = '' } = await harness.signIn(user);
    for (const proof of [{}, { 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example.com' }]) {
      const { status } = await harness.call('POST', pathOf(user.id), { headers: { cookie, ...proof } });
      expect(status).toBe(403);
    }
    expect((await list(user.apiKey)).status).toBe(200);
  });
});

describe('a rotation is rejected', () => {
  async function expectRejected(expected: object, call: () => ReturnType<Harness['call']>): Promise<void> {
    const userBefore = await storedUser(user.id);
    expect(await call()).toMatchObject(expected);
    expect(await storedUser(user.id)).toEqual(userBefore);
  }
  const denied = (reason: string) => ({ status: 403, json: failure(403, `Access denied: ${reason}`) });

  test('for another user, whether that user exists or not', async () => {
    const otherUser = await harness.newUser(account, 'developer', ['account_admin']);
    const notOwnKey = denied('Users may rotate their own API key only.');
    await expectRejected(notOwnKey, () => rotate(otherUser.apiKey, user.id));
    for (const id of [987_654_321, 0, `00${user.id}`, '9'.repeat(40)]) {
      await expectRejected(notOwnKey, () => rotate(user.apiKey, id));
    }
    const headers = await harness.signIn(otherUser);
    await expectRejected(notOwnKey, () => harness.call('POST', pathOf(user.id), { headers }));
  });

  test('for a service token, even one with all permissions', async () => {
    await expectRejected(denied('A service token is not a user.'), () => rotate(account.token));
  });

  test('with a 404 when the user id is not a number', async () => {
    for (const id of ['x', '-1', '1.5', 'me', '1e3', '%31x']) {
      await expectRejected({ status: 404, json: failure(404, 'Not found.') }, () => rotate(user.apiKey, id));
    }
  });

  test('without a valid credential', async () => {
    await expectRejected(INVALID, () => harness.call('POST', pathOf(user.id)));
    await expectRejected(INVALID, () => rotate(createCredential('user')));
    await expectRejected(INVALID, () => rotate('x'));
    await expectRejected({ status: 405 }, () => harness.call('GET', pathOf(user.id), { token: user.apiKey }));
  });
});

test('under load, no request that starts after the rotation succeeds with the old key, and all do with the new one', async () => {
  const second = await harness.startSecond();
  const path = account.path('/subscriptions');
  const userBefore: number[] = [];
  const userAfter: number[] = [];
  let isRotated = false;
  const enoughBefore = deferred();
  const statusOf = async (index: number, token: string) => {
    const call = index % 2 === 0 ? harness.call : second.call;
    return (await call('GET', path, { token })).status;
  };

  // 50 callers, 25 of each process, send requests until 100 that began after the rotation have ended.
  const callers = Array.from({ length: 50 }, async (_, index) => {
    while (userAfter.length < 100) {
      const statuses = isRotated ? userAfter : userBefore;
      statuses.push(await statusOf(index, user.apiKey));
      if (userBefore.length >= 100) enoughBefore.resolve();
    }
  });
  // A caller that fails ends the test at once.
  const pendingCalls = Promise.all(callers);
  await Promise.race([enoughBefore.promise, pendingCalls]);
  const { status, json } = await rotate(user.apiKey);
  isRotated = true;
  const fresh = Array.from({ length: 50 }, (_, index) => statusOf(index, json.data.api_key));
  await pendingCalls;
  expect(status).toBe(200);
  // Requests in flight during the rotation may have either result.
  expect(userBefore.filter((code) => code !== 200 && code !== 401)).toEqual([]);
  expect(userBefore.slice(0, 100)).toEqual(new Array(100).fill(200));
  expect(new Set(userAfter)).toEqual(new Set([401]));
  expect(new Set(await Promise.all(fresh))).toEqual(new Set([200]));
  await second.close();
});

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
