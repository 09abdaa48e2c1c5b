import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { failure, type Harness, startHarness, type TestAccount, type TestUser } from '../harness.ts';
import { V2_STATUS } from '../v2-status.ts';

const PATHS = ['/api/v2/accounts/', '/api/v2/accounts', '/api/v3/accounts', '/api/v3/accounts/'];

let harness: Harness;
let accounts: TestAccount[];
let user: TestUser;

beforeAll(async () => {
  harness = await startHarness();
  accounts = [
    await harness.newAccount({ plan: 'enterprise' }),
    await harness.newAccount({ plan: 'team', deployment: 'single_tenant_private' }),
    await harness.newAccount({ plan: 'free' }),
  ];
  await harness.newAccount();
  const [firstAccount, ...otherAccounts] = accounts as [TestAccount, ...TestAccount[]];
  user = await harness.newUser(firstAccount, 'it', []);
  for (const { id } of otherAccounts) {
    const membership = { accountId: BigInt(id), userId: BigInt(user.id), license: 'it', permissionSets: [] };
    await harness.database.prisma.membership.create({ data: membership });
  }
});

afterAll(() => harness.close());

const TIME = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/);

function viewOf(account: TestAccount | undefined, plan: string, deployment = 'multi_tenant') {
  const { id, identifier } = account as TestAccount;
  return { id, identifier, name: 'Acme', plan, deployment, created_at: TIME };
}

describe('the list of the caller’s accounts', () => {
  test('has all accounts of a user, oldest first, with integer ids, in both versions of the API', async () => {
    const expected = {
      data: [
        viewOf(accounts[0], 'enterprise'),
        viewOf(accounts[1], 'team', 'single_tenant_private'),
        viewOf(accounts[2], 'free'),
      ],
      extra: { pagination: { total_count: 3, count: 3 }, filters: { offset: 0, limit: 10 } },
    };
    const callers = [
      { token: user.apiKey },
      { headers: { authorization: `Bearer ${user.apiKey}` } },
      { headers: await harness.signIn(user) },
    ];
    for (const path of PATHS) {
      for (const caller of callers) {
        const { status, json } = await harness.call('GET', path, caller);
        const ended = path.startsWith('/api/v2/') ? { code: 200, ...V2_STATUS } : { code: 200 };
        expect({ status, json }).toEqual({ status: 200, json: { ...expected, status: ended } });
      }
    }
  });

  test('has the one account of a service token', async () => {
    const { token } = accounts[1] as TestAccount;
    const { json } = await harness.call('GET', '/api/v2/accounts/', { token });
    expect(json.data).toEqual([viewOf(accounts[1], 'team', 'single_tenant_private')]);
    expect(json.extra.pagination).toEqual({ total_count: 1, count: 1 });
  });

  test('is empty for a user without memberships', async () => {
    const otherUser = await harness.newUser(accounts[0] as TestAccount, 'it', []);
    await harness.database.prisma.membership.deleteMany({ where: { userId: BigInt(otherUser.id) } });
    const { json } = await harness.call('GET', '/api/v2/accounts/', { token: otherUser.apiKey });
    expect(json.data).toEqual([]);
    expect(json.extra.pagination).toEqual({ total_count: 0, count: 0 });
  });

  test('is paged by offset until total_count', async () => {
    const seenIds: number[] = [];
    let total = 1;
    for (let offset = 0; offset < total; offset += 2) {
      const path = `/api/v3/accounts?limit=2&offset=${offset}`;
      const { json } = await harness.call('GET', path, { token: user.apiKey });
      expect(json.extra.filters).toEqual({ offset, limit: 2 });
      seenIds.push(...json.data.map(({ id }: { id: number }) => id));
      total = json.extra.pagination.total_count;
    }
    expect(seenIds).toEqual(accounts.map(({ id }) => id));
  });

  test('requires valid page parameters and a credential', async () => {
    const invalidResponse = await harness.call('GET', '/api/v2/accounts/?limit=0&offset=x', {
      token: user.apiKey,
    });
    expect(invalidResponse.status).toBe(400);
    expect(invalidResponse.json.status.developer_message.split('\n')).toHaveLength(2);
    const { status, json } = await harness.call('GET', '/api/v2/accounts/');
    expect({ status, json }).toEqual({ status: 401, json: failure(401, 'Invalid token.') });
    const post = await harness.call('POST', '/api/v2/accounts/', { token: user.apiKey, body: {} });
    expect(post.status).toBe(405);
  });
});
