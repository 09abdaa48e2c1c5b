import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Harness, startHarness } from '../harness.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

test.each(['/api/v2/whoami/', '/api/v3/whoami'])(
  '%s returns the user who calls, without the key',
  async (path) => {
    const account = await harness.newAccount();
    const { id, email, apiKey } = await harness.newUser(account, 'developer', ['account_admin']);
    const name = 'Ada King Lovelace';
    await harness.database.prisma.user.update({ where: { id: BigInt(id) }, data: { name } });
    const { status, json } = await harness.call('GET', path, { token: apiKey });
    expect({ status, data: json.data }).toEqual({
      status: 200,
      data: {
        user: {
          id,
          email,
          name,
          first_name: 'Ada',
          last_name: 'King Lovelace',
          permissions: [
            {
              account_id: account.id,
              license_type: 'developer',
              permission_sets: ['account_admin'],
              groups: [],
            },
          ],
        },
        service_token: null,
      },
    });
    expect(JSON.stringify(json)).not.toContain('rhu_');
  },
);

test('a service token is returned without its secret, and anyone else is a 401', async () => {
  const account = await harness.newAccount();
  const { json } = await harness.call('GET', '/api/v2/whoami', { token: account.token });
  expect(json.data).toMatchObject({
    user: null,
    service_token: {
      account_id: account.id,
      expires_at: null,
      permissions: [{ account_id: account.id, license_type: null }],
    },
  });
  expect(JSON.stringify(json)).not.toContain('rhs_');
  expect((await harness.call('GET', '/api/v2/whoami', { token: 'x' })).status).toBe(401);
  expect((await harness.call('GET', '/api/v2/whoami?limit=1', { token: account.token })).status).toBe(400);
});
