import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { WEBHOOK_DELIVERIES } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { eventually } from '@runhook/testing';
import { type Harness, type Json, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});
afterAll(() => harness.close());

const ROUTING_KEY = 'R0123456789abcdef0123456789abcde';
const PAGERDUTY = {
  client_url: 'https://events.pagerduty.com/v2/enqueue',
  format: 'pagerduty',
  format_options: { routing_key: ROUTING_KEY },
};
const OPTIONS = {
  ...PAGERDUTY,
  filters: { run_statuses: [20] },
  ordered: true,
  rate_limit: 2.5,
  labels: { team: 'data', 'example.com/tier': '' },
  deactivate_on_410: true,
};
const NAMES = Object.keys(OPTIONS).filter((name) => name !== 'client_url');

const call = (method: string, suffix: string, body?: object) =>
  harness.call(method, account.path(suffix), { token: account.token, ...(body && { body }) });
const subscribe = (fields: object): Promise<Json> => harness.newSubscription(account, fields);
const get = async (id: string): Promise<Json> => (await call('GET', `/subscription/${id}`)).json.data;
const put = (id: string, fields: object) =>
  call('PUT', `/subscription/${id}`, { ...SUBSCRIPTION_FIELDS, ...fields });
const row = (id: string): Promise<Json> =>
  harness.database.prisma.subscription.findUniqueOrThrow({ where: { id } });
const problemsOf = ({ status, json }: { status: number; json: Json }) => [
  status,
  ...json.status.errors.map(({ field }: { field: string }) => field),
];
const storedOptionsOf = async (id: string) => {
  const { formatOptionsCiphertext } = await row(id);
  return JSON.parse(harness.secrets.decrypt(formatOptionsCiphertext));
};

test('a webhook without options has none of their fields, also if it sets them to their defaults', async () => {
  const unset = { format: 'runhook', ordered: false, deactivate_on_410: false, labels: {}, filters: {} };
  for (const fields of [{}, unset, { format: null, format_options: null, rate_limit: null, labels: null }])
    for (const name of NAMES) expect(await subscribe(fields)).not.toHaveProperty([name]);
});

test('options are returned as set, with ids as strings and secret values masked and stored encrypted', async () => {
  const created = await subscribe(OPTIONS);
  const view = { ...OPTIONS, format_options: { routing_key: '***' }, filters: { run_statuses: ['20'] } };
  expect(created).toMatchObject(view);
  expect(await get(created.id)).toMatchObject(view);
  expect(await row(created.id)).toMatchObject({ filters: { run_statuses: [20] }, rateLimit: 2.5 });
  expect(await storedOptionsOf(created.id)).toEqual({ routing_key: ROUTING_KEY });
});

describe('an update', () => {
  test('keeps omitted options, and with the response of a GET changes nothing', async () => {
    const { id } = await subscribe(OPTIONS);
    const before = await get(id);
    const { formatOptionsCiphertext } = await row(id);
    expect((await put(id, { client_url: PAGERDUTY.client_url })).json.data.filters).toEqual(before.filters);
    const { json } = await put(id, before);
    for (const name of NAMES) expect(json.data[name]).toEqual(before[name]);
    expect(await row(id)).toMatchObject({ formatOptionsCiphertext });
  });

  test('clears each option by null', async () => {
    const { id } = await subscribe(OPTIONS);
    const { json } = await put(id, Object.fromEntries(NAMES.map((name) => [name, null])));
    for (const name of NAMES) expect(json.data).not.toHaveProperty([name]);
  });

  test('removes the options of a format that it replaces, and requires those of the new one', async () => {
    const { id } = await subscribe(PAGERDUTY);
    const { json } = await put(id, { format: 'slack' });
    expect(json.data).toMatchObject({ format: 'slack' });
    expect(json.data).not.toHaveProperty('format_options');
    expect(problemsOf(await put(id, { format: 'pagerduty' }))).toEqual([400, 'format_options.routing_key']);
    const masked = { format: 'pagerduty', format_options: { routing_key: '***' } };
    expect(problemsOf(await put(id, masked))).toEqual([400, 'format_options.routing_key']);
  });

  test('that removes the endpoint keeps options and headers, and none is sent to the endpoint that follows', async () => {
    const { id } = await subscribe({ ...OPTIONS, headers: { 'X-Gate': 'open' } });
    const feedOnly = { ...(await get(id)), client_url: '' };
    const masked = { client_url: '', headers: { 'X-Gate': '***' }, format_options: { routing_key: '***' } };
    expect((await put(id, feedOnly)).json.data).toMatchObject(masked);
    expect((await put(id, { client_url: '' })).json.data).toMatchObject(masked);
    const { client_url } = PAGERDUTY;
    for (const [fields, rejected] of [
      [{ format: null }, 'headers'],
      [{ headers: null }, 'format_options'],
    ] as const)
      expect(problemsOf(await put(id, { ...fields, client_url }))).toEqual([400, rejected]);
  });

  test('must supply the options again if client_url changes to another server', async () => {
    const { id } = await subscribe(PAGERDUTY);
    const moved = { client_url: 'https://events.eu.pagerduty.com/v2/enqueue' };
    expect(problemsOf(await put(id, moved))).toEqual([400, 'format_options']);
    const masked = { ...moved, format_options: { routing_key: '***' } };
    expect(problemsOf(await put(id, masked))).toEqual([400, 'format_options.routing_key']);
    const other = { routing_key: ROUTING_KEY.toLowerCase() };
    expect((await put(id, { ...moved, format_options: other })).status).toBe(200);
    expect(await storedOptionsOf(id)).toEqual(other);
  });

  // The fields of `WebhookWrite` and `WebhookRead` of dbt-labs/terraform-provider-dbtcloud.
  test("by Terraform's provider, which does not know them, keeps the options, and its next plan is empty", async () => {
    const providerFields = ['id', 'name', 'description', 'client_url', 'event_types', 'job_ids', 'active'];
    const readByProvider = (view: Json) =>
      Object.fromEntries(providerFields.map((name) => [name, view[name]]));
    const { id } = await subscribe(OPTIONS);
    const before = await get(id);
    const written = { ...readByProvider(before), name: 'Renamed', job_ids: [] };
    expect((await call('PUT', `/subscription/${id}`, written)).status).toBe(200);
    const after = await get(id);
    expect(readByProvider(after)).toEqual({ ...readByProvider(before), name: 'Renamed' });
    for (const name of NAMES) expect(after[name]).toEqual(before[name]);
  });

  test('is recorded in the audit log with the options that it changed', async () => {
    const { id } = await subscribe({});
    await put(id, OPTIONS);
    const { rows } = await harness.database.pool.query(
      `SELECT details -> 'changed' AS changed FROM audit_entries WHERE target_id = $1 AND action = 'webhook.changed'`,
      [id],
    );
    expect(rows).toEqual([{ changed: ['client_url', ...NAMES] }]);
  });
});

test.each([
  ['an unknown format', { format: 'fax' }, ['format']],
  [
    'options without a format',
    { format_options: { routing_key: ROUTING_KEY } },
    ['format_options.routing_key'],
  ],
  ['a missing option', { format: 'pagerduty' }, ['format_options.routing_key']],
  [
    'a mask without a stored value',
    { ...PAGERDUTY, format_options: { routing_key: '***' } },
    ['format_options.routing_key'],
  ],
  ['a filter that no event matches', { filters: { run_statuses: [3] } }, ['filters']],
  ['environments of no account', { filters: { environment_ids: [999999] } }, ['filters.environment_ids']],
  ['projects of no account', { filters: { project_ids: ['999999'] } }, ['filters.project_ids']],
  ['a rate of 0', { rate_limit: 0 }, ['rate_limit']],
  ['a rate of 1,001', { rate_limit: 1_001 }, ['rate_limit']],
  ['a label with a space', { labels: { 'a b': '' } }, ['labels.a b']],
  ['a label that is a number', { labels: { a: 1 } }, ['labels.a']],
  ['eleven labels', { labels: Object.fromEntries([...Array(11)].map((_, n) => [`l${n}`, ''])) }, ['labels']],
  ['ordered in a string', { ordered: 'true' }, ['ordered']],
])('%s is a 400', async (_case, fields, problems) => {
  const body = { ...SUBSCRIPTION_FIELDS, ...fields };
  expect(problemsOf(await call('POST', '/subscriptions', body))).toEqual([400, ...problems]);
});

test('an update of the event types must not leave filters that match no event', async () => {
  const { id } = await subscribe({ filters: { run_statuses: [20] } });
  expect(problemsOf(await put(id, { event_types: ['job.run.started'] }))).toEqual([400, 'filters']);
});

test('the list is filtered by labels and event types', async () => {
  const own = await harness.newAccount();
  const create = (name: string, fields: object) => harness.newSubscription(own, { name, ...fields });
  await create('data', { labels: { team: 'data', env: 'a:b,c' }, event_types: ['job.run.started'] });
  await create('ops', { labels: { team: 'ops' }, event_types: ['job.run.errored'] });
  await create('none', {});
  const names = async (query: string) => {
    const { status, json } = await harness.call('GET', own.path(`/subscriptions?${query}`), {
      token: own.token,
    });
    return status === 200 ? json.data.map((one: Json) => one.name).sort() : status;
  };
  expect(await names('label=team')).toEqual(['data', 'ops']);
  expect(await names('label=team:data')).toEqual(['data']);
  expect(await names('label=team&label=env:a:b,c')).toEqual(['data']);
  expect(await names('label=team:')).toEqual([]);
  expect(await names('label=')).toEqual(['data', 'none', 'ops']);
  expect(await names('label=%20')).toBe(400);
  expect(await names('event_types=job.run.started')).toEqual(['data']);
  expect(await names('event_types=job.run.started,job.run.completed')).toEqual(['data', 'none']);
  expect(await names('event_types=job.run.exploded')).toBe(400);
});

describe('a duplicate', () => {
  test('is inactive, with a new secret and key pair, and all other values of the original', async () => {
    const headers = { signature_header: 'X-Signature', headers: { 'X-Gate': 'open' } };
    const original = await subscribe({ ...OPTIONS, ...headers, signature_key: 'ed25519' });
    const { status, json } = await call('POST', `/subscription/${original.id}/duplicate`);
    expect(status).toBe(201);
    const { id, name, active, hmac_secret: secret, signature_key: key, ...others } = json.data;
    expect([name, active]).toEqual(['Runs to the pager (copy)', false]);
    expect(id).not.toBe(original.id);
    expect(secret).toMatch(/^whsec_/);
    expect(secret).not.toBe(original.hmac_secret);
    expect(key.public_keys[0]).not.toBe(original.signature_key.public_keys[0]);
    const { created_at, updated_at, ...unchanged } = others;
    expect(original).toMatchObject(unchanged);
    expect(await storedOptionsOf(id)).toEqual({ routing_key: ROUTING_KEY });
    const { headersCiphertext } = await row(id);
    expect(JSON.parse(harness.secrets.decrypt(headersCiphertext))).toEqual({ 'X-Gate': 'open' });
  });

  test('of a webhook without options has none, and a name that the request may set', async () => {
    const original = await subscribe({ name: '🪝'.repeat(255) });
    const duplicate = (body?: object) => call('POST', `/subscription/${original.id}/duplicate`, body);
    const { data } = (await duplicate()).json;
    expect([...data.name]).toHaveLength(255);
    for (const name of NAMES) expect(data).not.toHaveProperty([name]);
    expect((await duplicate({ name: 'Staging' })).json.data.name).toBe('Staging');
    expect(problemsOf(await duplicate({ name: ' ' }))).toEqual([400, 'name']);
  });
});

test('while a dispatcher of an older release is connected, a new option is a 409, and nothing else changes', async () => {
  const { id } = await subscribe({ format: 'slack', labels: { team: 'data' } });
  const backend = createQueueBackend(harness.settings.queueUrl);
  const older = backend.createWorker(WEBHOOK_DELIVERIES, async () => undefined, {});
  try {
    await older.waitUntilReady();
    await eventually(async () =>
      expect(await call('POST', '/subscriptions', { ...SUBSCRIPTION_FIELDS, ordered: true })).toMatchObject({
        status: 409,
        json: {
          status: {
            user_message:
              'A dispatcher of an older release is running, which does not support ordered. Update all dispatchers, then try again.',
          },
        },
      }),
    );
    expect((await put(id, { rate_limit: 5, filters: { run_statuses: [20] } })).status).toBe(409);
    expect((await put(id, { client_url: '' })).status).toBe(409);
    expect((await call('POST', `/subscription/${id}/duplicate`)).status).toBe(409);
    expect((await put(id, { ...(await get(id)), labels: { team: 'ops' } })).status).toBe(200);
    expect((await put(id, { format: null })).status).toBe(200);
    expect((await call('POST', '/subscriptions', SUBSCRIPTION_FIELDS)).status).toBe(201);
  } finally {
    await older.close();
  }
  await eventually(async () => expect((await put(id, { ordered: true })).status).toBe(200));
});
