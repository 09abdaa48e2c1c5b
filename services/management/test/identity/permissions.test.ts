import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LICENSES, type License, PERMISSION_SETS, type PermissionSet } from '@runhook/database';
import { missingPermission } from '../../src/identity/principals.ts';
import {
  type CallOptions,
  failure,
  type Harness,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
} from '../harness.ts';

const WRITERS = {
  enterprise: new Set<PermissionSet>(['account_admin', 'admin', 'developer']),
  teamToken: new Set<PermissionSet>(['account_admin', 'member']),
};

const MESSAGES = {
  enterprise: 'Access denied: Writing webhooks needs the permission set account_admin, admin or developer.',
  teamUser: 'Access denied: Writing webhooks needs the Developer license.',
  teamToken: 'Access denied: Writing webhooks needs the permission set account_admin or member.',
};

let harness: Harness;
const accounts = {} as Record<'enterprise' | 'team', TestAccount>;

beforeAll(async () => {
  harness = await startHarness();
  accounts.enterprise = await harness.newAccount({ plan: 'enterprise' });
  accounts.team = await harness.newAccount({ plan: 'team' });
});

afterAll(() => harness.close());

/** Tries a create as the caller, and a list, which every member may do. */
async function write(account: TestAccount, caller: CallOptions, expected: 'may' | string): Promise<void> {
  const countsBefore = await harness.rowCounts();
  const created = await harness.call('POST', account.path('/subscriptions'), {
    ...caller,
    body: SUBSCRIPTION_FIELDS,
  });
  if (expected === 'may') {
    expect(created.status).toBe(201);
  } else {
    expect({ status: created.status, json: created.json }).toEqual({
      status: 403,
      json: failure(403, expected),
    });
    expect(await harness.rowCounts()).toEqual(countsBefore);
  }
  expect((await harness.call('GET', account.path('/subscriptions'), caller)).status).toBe(200);
}

/** Makes the calls with an API key and from the console: the user has the same permissions. */
async function writeAsUser(
  account: TestAccount,
  [license, permissionSets]: [License, PermissionSet[]],
  expected: 'may' | string,
): Promise<void> {
  const user = await harness.newUser(account, license, permissionSets);
  await write(account, { token: user.apiKey }, expected);
  await write(account, { headers: await harness.signIn(user) }, expected);
}

describe('the permission to write webhooks', () => {
  test.each([...PERMISSION_SETS])(
    'on the Enterprise plan depends on the permission set of a service token: %s',
    async (permissionSet) => {
      const token = await harness.newToken(accounts.enterprise, [permissionSet]);
      await write(
        accounts.enterprise,
        { token },
        WRITERS.enterprise.has(permissionSet) ? 'may' : MESSAGES.enterprise,
      );
    },
  );

  test.each([...PERMISSION_SETS])(
    'on Team depends on the permission set of a service token: %s',
    async (permissionSet) => {
      const token = await harness.newToken(accounts.team, [permissionSet]);
      await write(
        accounts.team,
        { token },
        WRITERS.teamToken.has(permissionSet) ? 'may' : MESSAGES.teamToken,
      );
    },
  );

  test.each([...PERMISSION_SETS])(
    "on the Enterprise plan depends on the permission set of a user and not on the user's licence: %s",
    async (permissionSet) => {
      for (const license of LICENSES) {
        const expected = WRITERS.enterprise.has(permissionSet) ? 'may' : MESSAGES.enterprise;
        await writeAsUser(accounts.enterprise, [license, [permissionSet]], expected);
      }
    },
  );

  test.each([...LICENSES])(
    'on Team depends on the licence of a user and not on permission sets: %s',
    async (license) => {
      const expected = license === 'developer' ? 'may' : MESSAGES.teamUser;
      await writeAsUser(accounts.team, [license, []], expected);
      await writeAsUser(accounts.team, [license, [...PERMISSION_SETS]], expected);
    },
  );

  test('is required by endpoints that write or test, which otherwise write nothing', async () => {
    const { enterprise } = accounts;
    const token = await harness.newToken(enterprise, []);
    const { id } = await harness.newSubscription(enterprise);
    const countsBefore = await harness.rowCounts();
    const writes = [
      ['POST', '/subscriptions'],
      ['PUT', `/subscription/${id}`],
      ['DELETE', `/subscription/${id}`],
      ['GET', `/subscription/${id}/test`],
      ['POST', `/subscription/${id}/delivery/wdl_x/redeliver`],
      ['POST', `/subscription/${id}/recover`],
    ] as const;
    for (const [method, path] of writes) {
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: SUBSCRIPTION_FIELDS };
      const { status, json } = await harness.call(method, enterprise.path(path), { token, ...body });
      expect({ status, json }).toEqual({ status: 403, json: failure(403, MESSAGES.enterprise) });
    }
    expect(await harness.rowCounts()).toEqual(countsBefore);
  });
});

describe('the permission table', () => {
  test('lets users and tokens report runs with job_runner or an admin set, on every plan', () => {
    for (const plan of ['free', 'developer', 'team', 'enterprise'] as const) {
      for (const set of PERMISSION_SETS) {
        const missing = ['job_runner', 'account_admin', 'admin'].includes(set)
          ? null
          : 'the permission set job_runner, account_admin or admin';
        const holders = [
          { kind: 'service_token', permissionSets: [set] },
          { kind: 'user', license: 'developer' as License, permissionSets: [set] },
        ] as const;
        for (const holder of holders) expect(missingPermission('report_runs', plan, holder)).toBe(missing);
      }
    }
  });

  test('is satisfied by one of several permission sets', () => {
    const holder = { kind: 'service_token', permissionSets: ['read_only', 'developer'] } as const;
    expect(missingPermission('write_webhooks', 'enterprise', holder)).toBeNull();
    expect(missingPermission('write_webhooks', 'team', holder)).not.toBeNull();
  });

  test('lets no one write webhooks on a plan without them', () => {
    const holder = { kind: 'service_token', permissionSets: [...PERMISSION_SETS] } as const;
    expect(missingPermission('write_webhooks', 'free', holder)).toBe('the Team or Enterprise plan');
    expect(missingPermission('read', 'free', holder)).toBeNull();
  });
});
