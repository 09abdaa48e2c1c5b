import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createCredential, hashCredential } from '@runhook/database';
import { failure, type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});

afterAll(() => harness.close());

const INVALID = { status: 401, json: failure(401, 'Invalid token.') };
const NOT_SCOPED = { status: 403, json: failure(403, 'Access denied: Token is not scoped to account.') };

describe('the caller', () => {
  test('is recognized by Token and Bearer in any case, for users and service tokens', async () => {
    const { apiKey } = await harness.newUser(account, 'read_only', []);
    for (const key of [account.token, apiKey]) {
      for (const scheme of ['Token', 'Bearer', 'token', 'BEARER']) {
        const headers = { authorization: `${scheme} ${key}` };
        const { status } = await harness.call('GET', account.path('/subscriptions'), { headers });
        expect({ scheme, status }).toEqual({ scheme, status: 200 });
      }
    }
  });

  test('gets a 401 when the credential is missing, malformed or unknown', async () => {
    const { token } = account;
    const headers = [
      undefined,
      '',
      'Token',
      'Token ',
      token,
      `Basic ${token}`,
      `Token ${token} ${token}`,
      `Token ${token.slice(0, -1)}`,
      `Token ${createCredential('user')}`,
      `Token ${createCredential('service_token')}`,
      `Token ${token.replace('rhs_', 'rhu_')}`,
    ];
    for (const authorization of headers) {
      const options = authorization === undefined ? {} : { headers: { authorization } };
      expect(await harness.call('GET', account.path('/subscriptions'), options)).toMatchObject(INVALID);
    }
  });

  test('gets a 401 once the token is revoked or has expired', async () => {
    const revoked = await harness.newToken(account, ['account_admin']);
    const expired = await harness.newToken(account, ['account_admin'], new Date(Date.now() - 1000));
    const unexpiredToken = await harness.newToken(account, ['account_admin'], new Date(Date.now() + 60_000));
    const list = async (token: string) =>
      await harness.call('GET', account.path('/subscriptions'), { token });
    expect((await list(revoked)).status).toBe(200);
    await harness.database.prisma.serviceToken.update({
      where: { tokenHash: hashCredential(revoked) },
      data: { revokedAt: new Date() },
    });
    expect(await list(revoked)).toMatchObject(INVALID);
    expect(await list(expired)).toMatchObject(INVALID);
    expect((await list(unexpiredToken)).status).toBe(200);
  });

  test('is authenticated before the account of the path and the body are checked', async () => {
    expect(await harness.call('POST', account.path('/subscriptions'), { body: '{' })).toMatchObject(INVALID);
    expect(await harness.call('GET', '/api/v3/accounts/x/webhooks/subscriptions')).toMatchObject(INVALID);
  });
});

describe('the account of the path', () => {
  test('must be that of the token, and a missing one gives the same error', async () => {
    const otherAccount = await harness.newAccount();
    for (const accountId of [otherAccount.id, 987_654_321, 0, '00', '9'.repeat(40)]) {
      const path = `/api/v3/accounts/${accountId}/webhooks/subscriptions`;
      expect(await harness.call('GET', path, { token: account.token })).toMatchObject(NOT_SCOPED);
    }
  });

  test('must be one of those that the user is a member of', async () => {
    const [otherAccount, foreign] = [await harness.newAccount(), await harness.newAccount()];
    const { id, apiKey } = await harness.newUser(account, 'read_only', []);
    const userId = BigInt(id);
    const membership = { license: 'it', permissionSets: [] };
    await harness.database.prisma.membership.create({
      data: { accountId: BigInt(otherAccount.id), userId, ...membership },
    });
    const list = async (of: TestAccount) =>
      await harness.call('GET', of.path('/subscriptions'), { token: apiKey });
    expect((await list(account)).status).toBe(200);
    expect((await list(otherAccount)).status).toBe(200);
    expect(await list(foreign)).toMatchObject(NOT_SCOPED);
    await harness.database.prisma.membership.deleteMany({ where: { userId } });
    expect(await list(account)).toMatchObject(NOT_SCOPED);
  });

  test('is a 404 when it is not a number', async () => {
    for (const accountId of ['x', '-1', '1.5', account.identifier]) {
      const path = `/api/v3/accounts/${accountId}/webhooks/subscriptions`;
      const { status, json } = await harness.call('GET', path, { token: account.token });
      expect({ status, json }).toEqual({ status: 404, json: failure(404, 'Not found.') });
    }
  });
});

describe('the endpoints of webhooks', () => {
  const everyEndpoint = [
    ['GET', '/subscriptions'],
    ['POST', '/subscriptions'],
    ['GET', '/subscription/wsu_x'],
    ['PUT', '/subscription/wsu_x'],
    ['DELETE', '/subscription/wsu_x'],
    ['GET', '/subscription/wsu_x/test'],
    ['POST', '/test'],
    ['GET', '/subscription/wsu_x/deliveries'],
    ['GET', '/subscription/wsu_x/delivery/wdl_x'],
    ['POST', '/subscription/wsu_x/delivery/wdl_x/redeliver'],
    ['POST', '/subscription/wsu_x/recover'],
    ['GET', '/subscription/wsu_x/recovery/wrc_x'],
  ] as const;

  test.each([
    ['free', 'multi_tenant', 'Webhooks are available on the Team and Enterprise plans only.'],
    [
      'developer',
      'single_tenant_public_cloud',
      'Webhooks are available on the Team and Enterprise plans only.',
    ],
    ['team', 'single_tenant_private', 'Webhooks are not available on this deployment.'],
    ['enterprise', 'single_tenant_private', 'Webhooks are not available on this deployment.'],
  ] as const)(
    'respond to any caller with a 403 that states why the account has no webhooks: %s, %s',
    async (plan, deployment, reason) => {
      const accountWithoutWebhooks = await harness.newAccount({ plan, deployment });
      const user = await harness.newUser(accountWithoutWebhooks, 'developer', ['account_admin']);
      const callers = [
        { token: accountWithoutWebhooks.token },
        { token: user.apiKey },
        { headers: await harness.signIn(user) },
      ];
      for (const caller of callers) {
        for (const [method, path] of everyEndpoint) {
          const { status, json } = await harness.call(method, accountWithoutWebhooks.path(path), caller);
          expect({ status, json }).toEqual({ status: 403, json: failure(403, `Access denied: ${reason}`) });
        }
      }
    },
  );

  test.each([
    ['team', 'multi_tenant'],
    ['team', 'single_tenant_public_cloud'],
    ['enterprise', 'multi_tenant'],
    ['enterprise', 'single_tenant_public_cloud'],
  ] as const)('are available on the plan %s and the deployment %s', async (plan, deployment) => {
    const withWebhooks = await harness.newAccount({ plan, deployment });
    const { token } = withWebhooks;
    expect((await harness.call('GET', withWebhooks.path('/subscriptions'), { token })).status).toBe(200);
  });
});
