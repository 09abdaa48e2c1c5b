import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { addQuarantined } from '@runhook/database';
import { type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});
afterAll(() => harness.close());

const state = async (of: TestAccount) =>
  (await harness.call('GET', of.path('/service-state'), { token: of.token })).json.data;

test('the service state of an account shows a writable record, and no items if none is set aside', async () => {
  expect(await state(account)).toEqual({ record_writable: true, quarantined_count: 0, quarantined: [] });
});

test('the service state of an account has its own set-aside items with their reasons, newest first', async () => {
  const item = { kind: 'event', accountId: account.id, reason: '22P05: unsupported' } as const;
  for (const key of ['wev_1', 'wev_2'])
    await addQuarantined(harness.database.pool, [{ ...item, key, message: { secret: 1 } }]);
  expect(await state(account)).toEqual({
    record_writable: true,
    quarantined_count: 2,
    quarantined: ['wev_2', 'wev_1'].map((id) => ({
      kind: 'event',
      id,
      reason: item.reason,
      created_at: expect.stringMatching(/^\d{16}$/),
    })),
  });
  expect(await state(await harness.newAccount())).toMatchObject({ quarantined_count: 0 });
});

test('the service state shows the source addresses and the public address that the operator configured', async () => {
  const publicUrl = 'https://console.example.com';
  const egressSourceAddresses = ['198.51.100.7/32', '2001:db8::/64'];
  const configured = await startHarness({ egressSourceAddresses, publicUrl });
  try {
    const { token, path } = await configured.newAccount();
    const { json } = await configured.call('GET', path('/service-state'), { token });
    expect(json.data).toMatchObject({ source_addresses: egressSourceAddresses, public_url: publicUrl });
  } finally {
    await configured.close();
  }
});
