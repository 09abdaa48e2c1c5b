import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Harness, type Json, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let id: string;

beforeAll(async () => {
  harness = await startHarness();
});

beforeEach(async () => {
  account = await harness.newAccount();
  id = (await harness.newSubscription(account)).id;
});

afterAll(() => harness.close());

const call = (method: string, path: string, body?: object) =>
  harness.call(method, account.path(path), { token: account.token, ...(body && { body }) });
const get = async (query = '?include=health'): Promise<Json> =>
  (await call('GET', `/subscription/${id}${query}`)).json.data;
const put = async (changes: object): Promise<Json> =>
  (await call('PUT', `/subscription/${id}`, { ...SUBSCRIPTION_FIELDS, ...changes })).json.data;

const SINCE = new Date('2026-11-22T07:00:00.000Z');
const FAILING = {
  failingSince: SINCE,
  consecutiveFailures: 12,
  lastSuccessAt: new Date('2026-11-21T07:00:00.000Z'),
};
const fail = (extraFields: object = {}) =>
  harness.database.prisma.subscription.update({ where: { id }, data: { ...FAILING, ...extraFields } });
const HEALTH_RESPONSE = {
  status: 'failing',
  failing_since: '1795330800000000',
  consecutive_failures: 12,
  last_success_at: '1795244400000000',
};

test('health is returned only on request, for one webhook and in the list', async () => {
  expect(await get()).toMatchObject({ health: { status: 'healthy', consecutive_failures: 0 } });
  expect((await get()).health).toEqual({ status: 'healthy', consecutive_failures: 0 });
  await fail();
  expect((await get()).health).toEqual(HEALTH_RESPONSE);
  const list = (await call('GET', '/subscriptions?include=health')).json.data;
  expect(list).toMatchObject([{ id, health: HEALTH_RESPONSE }]);
  expect(await get('')).not.toHaveProperty('health');
  expect((await call('GET', '/subscriptions')).json.data[0]).not.toHaveProperty('health');
  expect(await put({})).not.toHaveProperty('health');
});

test.each([
  '/subscriptions?include=secrets',
  '/subscription/ID?include=secrets',
  '/subscription/ID?include=health&include=health',
])('an unknown or repeated include is rejected: %s', async (path) => {
  const { status, json } = await call('GET', path.replace('ID', id));
  expect([status, json.status.errors[0].field]).toEqual([400, 'include']);
});

test('an update of a webhook keeps its health; a new endpoint resets all but the time of the last success', async () => {
  await fail();
  await put({ name: 'Renamed', active: true });
  expect((await get()).health).toEqual(HEALTH_RESPONSE);
  await put({ client_url: 'https://other.example.com/hooks' });
  const { last_success_at } = HEALTH_RESPONSE;
  expect((await get()).health).toEqual({ status: 'healthy', consecutive_failures: 0, last_success_at });
});

test.each([
  ['`active`', { active: true }, true],
  ['another endpoint', { client_url: 'https://other.example.com/hooks' }, true],
  [
    'another endpoint, but `active` says otherwise',
    { client_url: 'https://other.example.com/hooks', active: false },
    false,
  ],
  ['another name', { name: 'Renamed' }, false],
])('only active or a new endpoint reactivates a failed webhook: %s', async (_, changes, isReactivated) => {
  const reason = 'Its endpoint failed 12 times in a row since 2026-11-22T07:00:00Z.';
  await fail({ active: false, deactivateReason: reason });
  expect(await get()).toMatchObject({ active: false, deactivate_reason: reason });
  await put(changes);
  const subscriptionAfter = await get();
  expect(subscriptionAfter.active).toBe(isReactivated);
  expect(subscriptionAfter.deactivate_reason).toBe(isReactivated ? undefined : reason);
  if (isReactivated) expect(subscriptionAfter.health.status).toBe('healthy');
});

test('a webhook that its owner deactivated stays inactive when its endpoint changes', async () => {
  await put({ active: false });
  expect(await put({ client_url: 'https://other.example.com/hooks' })).toMatchObject({ active: false });
});

test('the list of webhooks is sorted by order_by and filtered by failing', async () => {
  await harness.database.prisma.subscription.update({ where: { id }, data: { name: 'B' } });
  const { id: laterId } = await harness.newSubscription(account, { name: 'c' });
  const { id: healthy } = await harness.newSubscription(account, { name: 'A' });
  await fail({ dispatchedAt: new Date('2026-11-22T08:00:00.000Z') });
  await harness.database.prisma.subscription.update({
    where: { id: laterId },
    data: { failingSince: new Date('2026-11-22T09:00:00.000Z') },
  });
  const list = async (query: string) =>
    (await call('GET', `/subscriptions?${query}`)).json.data.map((row: Json) => row.id);
  expect(await list('order_by=failing_since')).toEqual([laterId, id, healthy]);
  expect(await list('order_by=name')).toEqual([healthy, id, laterId]);
  expect(await list('order_by=dispatched_at')).toEqual([id, healthy, laterId]);
  expect(await list('order_by=created_at')).toEqual([healthy, laterId, id]);
  expect(await list('failing=true')).toEqual([laterId, id]);
  expect(await list('failing=false')).toEqual([healthy]);
  const { status, json } = await call('GET', '/subscriptions?order_by=health&failing=maybe');
  expect(status).toBe(400);
  expect(json.status.errors.map(({ field }: Json) => field).sort()).toEqual(['failing', 'order_by']);
});
