import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { formatByName, verify } from '@runhook/contract';
import { pagerDutyTarget, type Receiver, slackTarget, startReceiver, teamsTarget } from '@runhook/testing';
import { insertDelivery } from '../deliveries/delivery-rows.ts';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

const ROUTING_KEY = '0123456789abcdef0123456789abcdef';
const PUBLIC_URL = 'https://runhook.example';

let harness: Harness;
let account: TestAccount;
let receiver: Receiver;

beforeAll(async () => {
  harness = await startHarness({ publicUrl: PUBLIC_URL, egressAllowCidrs: ['127.0.0.1/32'] });
  account = await harness.newAccount();
});
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());
afterAll(() => harness.close());

const newSubscription = async (fields: object): Promise<Json> =>
  await harness.newSubscription(account, { client_url: `${receiver.url}/hook`, ...fields });

const testStored = (id: string, body?: object) =>
  harness.call('POST', account.path(`/subscription/${id}/test`), {
    token: account.token,
    ...(body !== undefined && { body }),
  });

const testUnsaved = (body: object) =>
  harness.call('POST', account.path('/test'), { token: account.token, body });

const fieldsOf = ({ status, json }: Json) => [
  status,
  (json.status.errors ?? []).map(({ field }: { field: string }) => field),
];

const storedDelivery = (subscriptionId: string) =>
  insertDelivery(harness.database, { accountId: account.id, subscriptionId });

describe('a test of a stored webhook', () => {
  test('sends the sample in the format of the webhook, also by GET', async () => {
    receiver.respondWith(slackTarget);
    const { id, hmac_secret: secret } = await newSubscription({ format: 'slack' });
    const { json } = await harness.call('GET', account.path(`/subscription/${id}/test`), {
      token: account.token,
    });
    expect(json.data).toEqual({ verification_error: null, verification_status_code: '200' });
    expect((await testStored(id)).json.data).toMatchObject({ verification_error: null, exchange: {} });
    for (const { body, headers } of await receiver.waitFor(2)) {
      expect(JSON.parse(body.toString())).toMatchObject({ blocks: expect.any(Array) });
      expect(verify(body, secret, headers.authorization)).toBe(true);
    }
  });

  test('sends a past event in another format, exactly as an attempt would', async () => {
    receiver.respondWith(slackTarget);
    const { id, name } = await newSubscription({});
    const { event } = await storedDelivery(id);
    const { json } = await testStored(id, { event_id: event.eventId, format: 'slack' });
    expect(json.data).toMatchObject({ verification_error: null, verification_status_code: '200' });
    const [request] = receiver.requests;
    const input = { event, subscription: { id, name }, consoleUrl: PUBLIC_URL, options: {} };
    expect(request?.body.toString()).toBe(formatByName('slack')?.render(input).body);
    expect(request?.headers['webhook-id']).toBe(event.eventId);
    expect(json.data.exchange.request_body).toBe(request?.body.toString());
  });

  test('interprets the response as the format does', async () => {
    receiver.respondWith(teamsTarget);
    const { id } = await newSubscription({ client_url: `${receiver.url}/throttled?sig=x` });
    expect((await testStored(id, { format: 'teams' })).json.data).toMatchObject({
      verification_error: expect.stringContaining('HTTP error 429'),
      verification_status_code: '200',
      verification_error_code: 'not_accepted',
      exchange: { error: { code: 'not_accepted' } },
    });
    const { json } = await testStored(id, { format: null });
    expect(json.data).toMatchObject({
      verification_status_code: '400',
      exchange: { response_body: expect.stringContaining('DirectApiRequestHasMoreThanOneAuthorization') },
    });
  });

  test('uses the stored options for the mask, and never shows them', async () => {
    receiver.respondWith((request, index) => ({
      ...pagerDutyTarget(request, index),
      headers: { 'x-key': ROUTING_KEY },
    }));
    const { id } = await newSubscription({
      format: 'pagerduty',
      format_options: { routing_key: ROUTING_KEY },
    });
    for (const body of [{}, { format: 'pagerduty', format_options: { routing_key: '***' } }]) {
      const { json } = await testStored(id, { event_type: 'job.run.errored', ...body });
      expect(json.data).toMatchObject({ verification_error: null });
      expect(JSON.parse(json.data.exchange.request_body)).toMatchObject({ routing_key: '***' });
      expect(JSON.stringify(json)).not.toContain(ROUTING_KEY);
    }
    for (const { body } of await receiver.waitFor(2)) expect(body.toString()).toContain(ROUTING_KEY);
  });

  test('masks echoed secrets in the error message', async () => {
    receiver.respondWith(({ headers }) => ({
      status: 400,
      body: `Invalid ${ROUTING_KEY} of ${headers['x-gate']}: ${headers.authorization}`,
    }));
    const { id } = await newSubscription({
      format: 'pagerduty',
      format_options: { routing_key: ROUTING_KEY },
      headers: { 'X-Gate': 't0ken-t0ken' },
    });
    const { data } = (await testStored(id, { event_type: 'job.run.errored' })).json;
    const message = 'PagerDuty responded with 400: Invalid *** of ***: ***';
    expect(data).toMatchObject({ verification_error: message, exchange: { error: { message } } });
  });

  test('rejects invalid options, unknown events, and events for which the format sends nothing', async () => {
    const { id } = await newSubscription({});
    const pagerduty = { format: 'pagerduty', format_options: { routing_key: ROUTING_KEY } };
    for (const [body, field] of [
      [{ format: 'telegram' }, 'format'],
      [{ format: 'pagerduty' }, 'format_options.routing_key'],
      [{ format: 'pagerduty', format_options: { routing_key: '***' } }, 'format_options.routing_key'],
      [{ format: 'slack', format_options: { routing_key: ROUTING_KEY } }, 'format_options.routing_key'],
      [{ event_id: 'wev_2Zk0fHXpQ1aBcDeFgHiJkLmNoPq' }, 'event_id'],
      [{ event_id: 'x' }, 'event_id'],
      [{ ...pagerduty, event_type: 'job.run.started' }, 'event_type'],
    ] as const)
      expect(fieldsOf(await testStored(id, body))).toEqual([400, [field]]);
    expect(receiver.requests).toEqual([]);
  });
});

test('a test of an endpoint that is not stored sends in the format of the request', async () => {
  receiver.respondWith(teamsTarget);
  const { json } = await testUnsaved({ client_url: `${receiver.url}/invoke?sig=x`, format: 'teams' });
  expect(json.data).toMatchObject({ verification_error: null, verification_status_code: '202' });
  expect(receiver.requests[0]?.headers).not.toHaveProperty('authorization');
  expect(fieldsOf(await testUnsaved({ client_url: receiver.url, format: 'pagerduty' }))).toEqual([
    400,
    ['format_options.routing_key'],
  ]);
});

test('the log shows the format of each attempt, and the body of the latest one with masked options', async () => {
  const fields = { format: 'pagerduty', format_options: { routing_key: ROUTING_KEY } };
  const { id: webhookId } = await newSubscription(fields);
  const { id, day } = await storedDelivery(webhookId);
  const path = account.path(`/subscription/${webhookId}/delivery/${id}`);
  const load = async () => (await harness.call('GET', path, { token: account.token })).json.data;
  const addAttempt = (number: number, format: string | null) =>
    harness.database.pool.query(
      `INSERT INTO attempts (day, account_id, delivery_id, number, trigger, started_at, duration_ms, http_status_code,
         request_headers, response_truncated, format)
       VALUES ($1, $2, $3, $4, 'automatic', now(), 1, 400, '{}', false, $5)`,
      [day, account.id, id, number, format],
    );
  expect(JSON.parse((await load()).payload)).toMatchObject({ routing_key: '***', event_action: 'resolve' });
  await addAttempt(1, null);
  const { payload, attempts } = await load();
  expect(JSON.parse(payload)).toMatchObject({ eventType: 'job.run.completed' });
  expect(attempts[0]).not.toHaveProperty('format');
  await addAttempt(2, 'slack');
  const later = await load();
  expect(later.attempts[1]).toMatchObject({ format: 'slack' });
  expect(JSON.parse(later.payload)).toMatchObject({ blocks: expect.any(Array) });
});
