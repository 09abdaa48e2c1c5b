import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TokenUses } from '../../src/identity/token-uses.ts';
import { failure, type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

const list = (token = account.token, query = '') =>
  harness.call('GET', `/api/v3/accounts/${account.id}/tokens${query}`, { token });

/** Creates a token of a new account, and returns its id. */
async function newUnusedToken(): Promise<number> {
  account = await harness.newAccount();
  await harness.newToken(account, ['job_runner']);
  return (await list()).json.data[0].id;
}

/** Returns the last use of the newest token. Lists with the oldest one, which the service records as used. */
const lastUse = async (): Promise<string | null> => (await list()).json.data[0].last_used_at;

test('the service tokens of an account are listed for its admins, newest first, without their secrets', async () => {
  account = await harness.newAccount({ plan: 'free' });
  const expiresAt = new Date('2099-01-31T12:00:00Z');
  const secret = await harness.newToken(account, ['job_runner'], expiresAt);
  const { status, json } = await list();
  expect(status).toBe(200);
  const common = {
    id: expect.any(Number),
    name: 'a token',
    created_at: expect.any(String),
    last_used_at: null,
    revoked_at: null,
  };
  expect(json.data).toEqual([
    { ...common, permission_sets: ['job_runner'], expires_at: '2099-01-31T12:00:00Z' },
    // The calls of this test use it.
    {
      ...common,
      permission_sets: ['account_admin'],
      expires_at: null,
      last_used_at: json.data[1].last_used_at,
    },
  ]);
  expect(JSON.stringify(json)).not.toContain(secret);
  expect((await list(account.token, '?limit=1&offset=1')).json.data).toHaveLength(1);
  expect(await list(secret)).toMatchObject({
    status: 403,
    json: failure(
      403,
      'Access denied: Reading the service tokens needs the permission set account_admin or admin.',
    ),
  });
  const foreign = await harness.newAccount();
  expect((await list(foreign.token)).status).toBe(403);
});

test('the last use of a token is written at most once a minute', async () => {
  const usedId = await newUnusedToken();
  const { pool } = harness.database;
  const uses = new TokenUses(pool);
  const rowVersion = async () =>
    (await pool.query('SELECT xmin::text AS version FROM service_tokens WHERE id = $1', [usedId])).rows[0]
      .version;
  const { version: cacheVersion } = await harness.database.prisma.cacheVersion.findFirstOrThrow();

  uses.add(usedId);
  await uses.flush();
  expect(await lastUse()).toEqual(expect.any(String));
  const version = await rowVersion();
  uses.add(usedId);
  await uses.flush();
  expect(await rowVersion()).toBe(version);
  await pool.query(`UPDATE service_tokens SET last_used_at = now() - interval '61 seconds' WHERE id = $1`, [
    usedId,
  ]);
  const outdated = await rowVersion();
  uses.add(usedId);
  await uses.flush();
  expect(await rowVersion()).not.toBe(outdated);
  // Otherwise each use would make the cached callers of all processes outdated.
  expect((await harness.database.prisma.cacheVersion.findFirstOrThrow()).version).toBe(cacheVersion);
});

test('a use that could not be written is written by the next call', async () => {
  const usedId = await newUnusedToken();
  const { pool } = harness.database;
  let isAvailable = false;
  const unreliable = new Proxy(pool, {
    get(target, name) {
      if (!isAvailable) throw new Error('unavailable');
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const uses = new TokenUses(unreliable);
  uses.add(usedId);
  await expect(uses.flush()).rejects.toThrow();
  isAvailable = true;
  expect(await lastUse()).toBeNull();
  await uses.flush();
  expect(await lastUse()).toEqual(expect.any(String));
});

test('a request with a service token is recorded as its use when the service stops, at the latest', async () => {
  account = await harness.newAccount();
  const token = await harness.newToken(account, ['read_only']);
  const second = await harness.startSecond();
  expect((await second.call('GET', account.path('/subscriptions'), { token })).status).toBe(200);
  await second.close();
  expect(await lastUse()).toEqual(expect.any(String));
});
