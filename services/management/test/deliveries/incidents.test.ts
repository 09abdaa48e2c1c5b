import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Harness, type Json, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';
import { insertAttempt, insertDelivery } from './delivery-rows.ts';

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
});

afterAll(() => harness.close());

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const NOW_MS = Date.now();
const ago = (ms: number) => new Date(NOW_MS - ms);

async function incidents(query = ''): Promise<{ status: number; json: Json }> {
  return await harness.call('GET', account.path(`/incidents${query}`), { token: account.token });
}

/** Writes a webhook's health as the dispatchers do. */
async function fail(id: string, failures: number, sinceMs: number): Promise<void> {
  await harness.database.pool.query(
    'UPDATE subscriptions SET failing_since = $2, consecutive_failures = $3, http_status_code = 400 WHERE id = $1',
    [id, ago(sinceMs), failures],
  );
}

async function succeed(id: string, atMs: number): Promise<void> {
  await harness.database.pool.query(
    `UPDATE subscriptions SET failing_since = NULL, consecutive_failures = 0, last_success_at = $2 WHERE id = $1`,
    [id, ago(atMs)],
  );
}

/** Inserts a delivery whose only attempt failed with this response. */
async function failed(
  id: string,
  endpointResponse: { status: number; body: string | null; error?: string; at: number; runId: number },
  state: object = {},
): Promise<string> {
  const delivery = await insertDelivery(harness.database, {
    subscriptionId: id,
    accountId: account.id,
    eventTime: ago(endpointResponse.at),
    createdAt: ago(endpointResponse.at).toISOString(),
    completedAt: ago(endpointResponse.at).toISOString(),
    runId: endpointResponse.runId,
    attemptCount: 1,
    httpStatusCode: endpointResponse.status,
    errorCode: endpointResponse.error ?? 'unsuccessful_status',
    ...state,
  });
  await insertAttempt(harness.database, {
    day: delivery.day,
    deliveryId: delivery.id,
    number: 1,
    columns: {
      started_at: ago(endpointResponse.at),
      http_status_code: endpointResponse.status,
      error_code: endpointResponse.error ?? 'unsuccessful_status',
      error_message: 'What it said.',
      response_body: endpointResponse.body,
    },
  });
  return delivery.id;
}

test('a failing webhook is an open incident with its cause, start and affected deliveries', async () => {
  account = await harness.newAccount();
  const { id } = await harness.newSubscription(account, { name: 'Runs to Slack' });
  await fail(id, 9, 10 * MINUTE_MS);
  const noText = { status: 400, body: 'no_text' };
  const firstDelivery = await failed(id, { ...noText, at: 9 * MINUTE_MS, runId: 1 });
  await failed(id, { ...noText, at: 8 * MINUTE_MS, runId: 2 });
  await failed(id, { status: 504, body: null, error: 'timeout', at: 7 * MINUTE_MS, runId: 2 });
  const last = await failed(
    id,
    { ...noText, at: 6 * MINUTE_MS, runId: 3 },
    { status: 'pending', completedAt: null },
  );
  // A failure before the incident, and a successful delivery.
  await failed(id, { ...noText, at: 20 * MINUTE_MS, runId: 4 });
  await insertDelivery(harness.database, {
    subscriptionId: id,
    accountId: account.id,
    status: 'delivered',
    attemptCount: 1,
    createdAt: ago(5 * MINUTE_MS).toISOString(),
  });
  const { status, json } = await incidents();
  expect(status).toBe(200);
  expect(json.extra.pagination).toEqual({ count: 1, total_count: 1 });
  expect(json.data).toHaveLength(1);
  expect(json.data[0]).toMatchObject({
    subscription_id: id,
    subscription_name: 'Runs to Slack',
    status: 'open',
    until: null,
    since: `${NOW_MS - 10 * MINUTE_MS}000`,
    failure_count: 9,
    last_success_at: null,
    delivery_count: 4,
    failed_count: 3,
    pending_count: 1,
    run_count: 3,
    first_delivery: { id: firstDelivery },
    last_delivery: { id: last },
    causes: [
      {
        code: 'slack_no_text',
        title: '400 no_text: Slack needs a `text` field',
        delivery_count: 3,
        delivery_id: last,
        http_status_code: '400',
      },
      { code: 'timeout', delivery_count: 1, http_status_code: '504', error_code: 'timeout' },
    ],
  });
});

test('an incident closes with a success and still shows its cause and the deliveries left to redeliver', async () => {
  account = await harness.newAccount();
  const { id } = await harness.newSubscription(account);
  await fail(id, 6, 10 * MINUTE_MS);
  await failed(id, { status: 410, body: 'channel_is_archived', at: 9 * MINUTE_MS, runId: 1 });
  // A delivery that was sent again successfully.
  const retried = { status: 'delivered', attemptCount: 2, httpStatusCode: 200, errorCode: null };
  await failed(id, { status: 410, body: 'channel_is_archived', at: 8 * MINUTE_MS, runId: 2 }, retried);
  await succeed(id, 5 * MINUTE_MS);
  // Another failure, long after the incident.
  await failed(id, { status: 500, body: null, at: MINUTE_MS, runId: 3 });
  expect((await incidents('?status=open')).json.data).toEqual([]);
  const { json } = await incidents();
  expect(json.data).toHaveLength(1);
  expect(json.data[0]).toMatchObject({
    status: 'closed',
    since: `${NOW_MS - 10 * MINUTE_MS}000`,
    until: `${NOW_MS - 5 * MINUTE_MS}000`,
    failure_count: 6,
    delivery_count: 2,
    failed_count: 1,
    causes: [{ code: 'slack_hook_gone', delivery_count: 2 }],
  });
});

test('four failures within a minute are no incident, and intermittent failures are one incident', async () => {
  account = await harness.newAccount();
  const { id } = await harness.newSubscription(account);
  await fail(id, 4, 30 * SECOND_MS);
  expect((await incidents()).json.data).toEqual([]);
  await succeed(id, 20 * SECOND_MS);
  expect((await incidents()).json.data).toEqual([]);
  for (const minutes of [30, 27, 24]) {
    await fail(id, 2, minutes * MINUTE_MS);
    await succeed(id, (minutes - 1) * MINUTE_MS);
  }
  const span = (fromMinutes: number, toMinutes: number) => ({
    since: `${NOW_MS - fromMinutes * MINUTE_MS}000`,
    until: `${NOW_MS - toMinutes * MINUTE_MS}000`,
  });
  expect((await incidents()).json.data).toMatchObject([{ ...span(30, 23), failure_count: 6 }]);
  await fail(id, 1, 17 * MINUTE_MS);
  expect((await incidents()).json.data).toMatchObject([{ status: 'open' }, span(30, 23)]);
  // The webhook succeeded and failed again within the half second for which dispatchers coalesce a status.
  await harness.database.pool.query(
    'UPDATE subscriptions SET failing_since = $2, last_success_at = $3 WHERE id = $1',
    [id, ago(2 * MINUTE_MS), ago(3 * MINUTE_MS)],
  );
  expect((await incidents()).json.data).toMatchObject([
    { status: 'open', since: span(2, 0).since },
    span(17, 3),
    span(30, 23),
  ]);
});

test('an incident stays open after a change of the endpoint until a delivery succeeds', async () => {
  account = await harness.newAccount();
  const { id } = await harness.newSubscription(account);
  await fail(id, 6, 10 * MINUTE_MS);
  await failed(id, { status: 400, body: 'no_text', at: 9 * MINUTE_MS, runId: 1 });
  const { status } = await harness.call('PUT', account.path(`/subscription/${id}`), {
    token: account.token,
    body: { ...SUBSCRIPTION_FIELDS, client_url: 'https://receiver.example.com/other' },
  });
  expect(status).toBe(200);
  const { data } = (await incidents()).json;
  const digits = expect.stringMatching(/^\d+$/);
  const moved = { since: `${NOW_MS - 10 * MINUTE_MS}000`, endpoint_changed_at: digits, failed_count: 1 };
  expect(data).toMatchObject([
    { ...moved, status: 'open', until: null, causes: [{ code: 'slack_no_text' }] },
  ]);
  expect((await incidents('?status=closed')).json).toMatchObject({
    data: [],
    extra: { pagination: { total_count: 0 } },
  });
  // The time is set by the clock of the database, so that it follows the change.
  await harness.database.pool.query('UPDATE subscriptions SET last_success_at = now() WHERE id = $1', [id]);
  expect((await incidents()).json.data).toMatchObject([
    {
      ...moved,
      status: 'closed',
      until: data[0].endpoint_changed_at,
      endpoint_changed_at: data[0].endpoint_changed_at,
    },
  ]);
});

test('a webhook that its owner deactivated or deleted has no incident, but one deactivated by failures has', async () => {
  account = await harness.newAccount();
  const { id } = await harness.newSubscription(account);
  await fail(id, 50, 10 * MINUTE_MS);
  const update = (set: string) =>
    harness.database.pool.query(`UPDATE subscriptions SET ${set} WHERE id = $1`, [id]);
  await update('active = false');
  expect((await incidents()).json.data).toEqual([]);
  await update(`deactivate_reason = 'It failed.'`);
  expect((await incidents()).json.data).toMatchObject([
    { subscription_id: id, causes: [], first_delivery: null },
  ]);
  await update('deleted_at = now()');
  expect((await incidents()).json.data).toEqual([]);
});

test('incidents are listed in pages, open ones before closed ones, optionally of one webhook', async () => {
  account = await harness.newAccount();
  const ids: string[] = [];
  for (const minutes of [5, 4, 3, 2]) {
    const { id } = await harness.newSubscription(account, { name: `Fails since ${minutes} min` });
    ids.push(id);
    await fail(id, 9, minutes * MINUTE_MS);
  }
  const [oldest = '', older = '', newer = '', newest = ''] = ids;
  await succeed(oldest, MINUTE_MS);
  await succeed(newest, 30 * SECOND_MS);
  const page = async (query: string) => {
    const { data, extra } = (await incidents(query)).json;
    const shownIds = data.map(({ subscription_id }: Json) => subscription_id);
    return [shownIds, extra.pagination.total_count];
  };
  expect(await page('')).toEqual([[newer, older, newest, oldest], 4]);
  expect(await page('?limit=3')).toEqual([[newer, older, newest], 4]);
  expect(await page('?limit=3&offset=1')).toEqual([[older, newest, oldest], 4]);
  expect(await page('?limit=2&offset=3')).toEqual([[oldest], 4]);
  expect(await page('?status=closed&limit=1')).toEqual([[newest], 2]);
  expect(await page('?status=open&offset=1')).toEqual([[older], 2]);
  expect(await page(`?subscription_id=${oldest}`)).toEqual([[oldest], 1]);
  const otherAccount = await harness.newAccount();
  const foreign = await harness.call('GET', otherAccount.path(`/incidents?subscription_id=${older}`), {
    token: otherAccount.token,
  });
  expect(foreign.json.data).toEqual([]);
});

test('invalid parameters of the list of incidents are rejected by name', async () => {
  account = await harness.newAccount();
  const { status, json } = await incidents('?status=ongoing&subscription_id=7&limit=0');
  expect(status).toBe(400);
  expect(json.status.errors.map(({ field }: Json) => field).sort()).toEqual([
    'limit',
    'status',
    'subscription_id',
  ]);
});

test('all targets that were not called have one cause', async () => {
  account = await harness.newAccount();
  const { id } = await harness.newSubscription(account, { name: 'Runs to nowhere' });
  await fail(id, 9, 10 * MINUTE_MS);
  for (const [index, error] of ['address_forbidden', 'port_forbidden', 'dns_failed'].entries())
    await failed(id, { status: 502, body: null, error, at: (9 - index) * MINUTE_MS, runId: index });
  expect((await incidents()).json.data[0].causes).toMatchObject([
    {
      code: 'no_address',
      title: 'No usable address: check the host name, its DNS record and the port',
      error_code: 'no_address',
      delivery_count: 3,
    },
  ]);
});
