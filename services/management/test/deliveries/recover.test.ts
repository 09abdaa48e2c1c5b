import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createId } from '@runhook/contract';
import { failure, type Harness, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';
import { at, DAY, type DeliveryFields, EVENT_TIME, insertDelivery, microsAt } from './delivery-rows.ts';

let harness: Harness;
let account: TestAccount;
let subscriptionId: string;

beforeAll(async () => {
  harness = await startHarness();
});
beforeEach(async () => {
  account = await harness.newAccount();
  subscriptionId = (await harness.newSubscription(account)).id;
});
afterAll(() => harness.close());

const SINCE = at('10:00:00');
const TEN = microsAt('10:00:00');
const ELEVEN = microsAt('11:00:00');
const MICROS = expect.stringMatching(/^\d{16}$/);

const insert = async (fields: Partial<DeliveryFields> = {}) =>
  await insertDelivery(harness.database, {
    subscriptionId,
    accountId: account.id,
    createdAt: SINCE,
    eventTime: EVENT_TIME,
    completedAt: at('10:05:00'),
    ...fields,
  });

const recover = async (body: unknown, caller: { token: string } = account) =>
  await harness.call('POST', account.path(`/subscription/${subscriptionId}/recover/`), {
    token: caller.token,
    body,
  });

const find = async (id: string, caller: { token: string } = account) =>
  await harness.call('GET', account.path(`/subscription/${subscriptionId}/recovery/${id}`), {
    token: caller.token,
  });

async function endRecoveries(): Promise<void> {
  await harness.database.pool.query(`UPDATE recoveries SET status = 'done', completed_at = now()`);
}

describe('a recovery', () => {
  test('returns its count at once and reports its progress', async () => {
    for (let index = 0; index < 3; index++) await insert();
    const { status, json } = await recover({ since: SINCE, until: ELEVEN });
    const data = {
      id: expect.stringMatching(/^wrc_[0-9A-Za-z]{27}$/),
      subscription_id: subscriptionId,
      status: 'running',
      reason: null,
      since: TEN,
      until: ELEVEN,
      delivery_status: 'failed',
      total_count: 3,
      recovered_count: 0,
      outcome: { pending: 0, delivered: 0, failed: 0, cancelled: 0 },
      created_at: MICROS,
      completed_at: null,
    };
    expect({ status, json }).toEqual({ status: 202, json: { data, status: { code: 202 } } });
    const reader = { token: await harness.newToken(account, ['read_only']) };
    expect(await find(json.data.id, reader)).toMatchObject({ status: 200, json: { data: json.data } });
    await harness.database.pool.query(
      `UPDATE recoveries SET status = 'cancelled', reason = 'why', recovered_count = 2, completed_at = now() WHERE id = $1`,
      [json.data.id],
    );
    const cancelled = { status: 'cancelled', reason: 'why', recovered_count: 2, completed_at: MICROS };
    expect((await find(json.data.id)).json.data).toEqual({ ...json.data, ...cancelled });
  });

  test('counts deliveries of its subscription, window and status that were completed before it', async () => {
    await insert();
    await insert({ createdAt: at('10:59:59.999999') });
    await insert({ createdAt: at('09:59:59.999999') });
    await insert({ createdAt: at('11:00:00') });
    await insert({ status: 'cancelled' });
    await insert({ status: 'delivered' });
    await insert({ status: 'pending', completedAt: null });
    await insert({ completedAt: new Date(Date.now() + 60_000).toISOString() });
    await insert({ subscriptionId: (await harness.newSubscription(account)).id });
    const window = { since: SINCE, until: at('11:00:00') };
    expect((await recover(window)).json.data.total_count).toBe(2);
    await endRecoveries();
    const cancelled = { ...window, status: 'cancelled' };
    expect((await recover(cancelled)).json.data).toMatchObject({
      total_count: 1,
      delivery_status: 'cancelled',
    });
  });

  test('without an end includes deliveries until its creation', async () => {
    await insert();
    for (const until of [{}, { until: null, status: null }]) {
      const { data } = (await recover({ since: DAY, ...until })).json;
      expect(data).toMatchObject({ until: data.created_at, delivery_status: 'failed', total_count: 1 });
      await endRecoveries();
    }
  });

  test('without matching deliveries is done at once', async () => {
    const { status, json } = await recover({ since: SINCE });
    expect(status).toBe(202);
    expect(json.data).toMatchObject({ status: 'done', total_count: 0, completed_at: json.data.created_at });
  });
});

describe('a subscription with a running recovery', () => {
  const runningConflict = (id: string) =>
    failure(409, `The recovery ${id} of this webhook is still running.`);

  test('rejects a second one with a 409 that names the first, until that one has ended', async () => {
    await insert();
    const recoveryId = (await recover({ since: SINCE })).json.data.id;
    expect(await recover({ since: SINCE })).toMatchObject({ status: 409, json: runningConflict(recoveryId) });
    const emptyWindow = { since: SINCE, until: at('10:00:00.000001'), status: 'cancelled' };
    expect(await recover(emptyWindow)).toMatchObject({ status: 409, json: runningConflict(recoveryId) });
    await endRecoveries();
    expect((await recover({ since: SINCE })).status).toBe(202);
  });

  test('accepts one of many concurrent calls and rejects the others with a 409', async () => {
    await insert();
    const responses = await Promise.all(Array.from({ length: 8 }, () => recover({ since: SINCE })));
    const startedId = responses.find(({ status }) => status === 202)?.json.data.id;
    for (const response of responses.filter(({ status }) => status !== 202))
      expect(response).toMatchObject({ status: 409, json: runningConflict(startedId) });
    expect(responses.filter(({ status }) => status === 409)).toHaveLength(7);
  });

  test('does not prevent a recovery of another subscription', async () => {
    await insert();
    expect((await recover({ since: SINCE })).status).toBe(202);
    subscriptionId = (await harness.newSubscription(account)).id;
    await insert();
    expect((await recover({ since: SINCE })).status).toBe(202);
  });
});

describe('a recovery is rejected and nothing written', () => {
  const TIMESTAMP_PROBLEM =
    'must be microseconds since the epoch, in digits, or an ISO 8601 time with its zone';
  const bodies: [object | string, string][] = [
    [{}, 'since: is required'],
    ['null', 'body: must be of type object'],
    ['[]', 'body: must be of type object'],
    [{ since: '' }, `since: ${TIMESTAMP_PROBLEM}`],
    [{ since: null }, `since: ${TIMESTAMP_PROBLEM}`],
    [{ since: 1_795_168_800 }, `since: ${TIMESTAMP_PROBLEM}`],
    [{ since: '2026-02-30' }, `since: ${TIMESTAMP_PROBLEM}`],
    [{ since: `${DAY}T10:00:00` }, `since: ${TIMESTAMP_PROBLEM}`],
    [{ since: SINCE, until: 'now' }, `until: ${TIMESTAMP_PROBLEM}`],
    [{ since: SINCE, until: TEN }, 'until: must be later than since'],
    [{ since: SINCE, status: 'pending' }, 'status: must be one of failed, cancelled'],
    [
      { since: 'x', until: [], status: 1 },
      `since: ${TIMESTAMP_PROBLEM}\nuntil: ${TIMESTAMP_PROBLEM}\nstatus: must be one of failed, cancelled`,
    ],
  ];

  test.each(bodies)('for the body %j', async (body, problem) => {
    await insert();
    const countsBefore = await harness.rowCounts();
    const { status, json } = await recover(body);
    expect({ status, problem: json.status.developer_message }).toEqual({ status: 400, problem });
    expect(await harness.rowCounts()).toEqual(countsBefore);
  });

  test('for a request without a body', async () => {
    const { status, json } = await recover(undefined);
    expect({ status, problem: json.status.developer_message }).toEqual({
      status: 400,
      problem: 'body: is required',
    });
  });

  test('for a caller without permission to write', async () => {
    const countsBefore = await harness.rowCounts();
    const token = await harness.newToken(account, ['read_only']);
    expect((await recover({ since: SINCE }, { token })).status).toBe(403);
    expect(await harness.rowCounts()).toEqual(countsBefore);
  });

  test('for an inactive subscription', async () => {
    await insert();
    const body = { ...SUBSCRIPTION_FIELDS, active: false };
    await harness.call('PUT', account.path(`/subscription/${subscriptionId}`), { ...account, body });
    const countsBefore = await harness.rowCounts();
    const inactive = failure(409, 'The webhook is inactive: activate it to recover its deliveries.');
    expect(await recover({ since: SINCE })).toMatchObject({ status: 409, json: inactive });
    expect(await harness.rowCounts()).toEqual(countsBefore);
  });
});

describe('the recoveries of a subscription', () => {
  const list = async (query = '') =>
    (
      await harness.call('GET', account.path(`/subscription/${subscriptionId}/recoveries${query}`), {
        token: await harness.newToken(account, ['read_only']),
      })
    ).json;
  const cancel = async (id: string, caller: { token: string } = account) =>
    await harness.call('POST', account.path(`/subscription/${subscriptionId}/recovery/${id}/cancel`), {
      token: caller.token,
    });

  test('are listed newest first with the current statuses of their deliveries', async () => {
    const ids: string[] = [];
    for (const [index, statuses] of [
      ['delivered', 'failed'],
      ['delivered', 'delivered', 'pending'],
    ].entries()) {
      await insert();
      ids.push((await recover({ since: SINCE })).json.data.id);
      await endRecoveries();
      for (const status of statuses) {
        const { id } = await insert({ status, createdAt: at(`0${index + 1}:00:00`) });
        await harness.database.pool.query('UPDATE deliveries SET recovery_id = $1 WHERE id = $2', [
          ids[index],
          id,
        ]);
      }
    }
    const { data, extra } = await list();
    expect(data.map(({ id, outcome }: { id: string; outcome: object }) => [id, outcome])).toEqual([
      [ids[1], { pending: 1, delivered: 2, failed: 0, cancelled: 0 }],
      [ids[0], { pending: 0, delivered: 1, failed: 1, cancelled: 0 }],
    ]);
    expect(extra.pagination).toEqual({ total_count: 2, count: 2 });
    expect((await list('?limit=1&offset=1')).data).toEqual([data[1]]);
    subscriptionId = (await harness.newSubscription(account)).id;
    expect((await list()).data).toEqual([]);
  });

  test('can be cancelled once, by callers with permission to write', async () => {
    await insert();
    const { id } = (await recover({ since: SINCE })).json.data;
    const token = await harness.newToken(account, ['read_only']);
    expect((await cancel(id, { token })).status).toBe(403);
    const cancelResponse = await cancel(id);
    expect(cancelResponse).toMatchObject({
      status: 200,
      json: {
        data: {
          id,
          status: 'cancelled',
          reason: 'The recovery was cancelled by a request.',
          completed_at: MICROS,
        },
      },
    });
    expect(await cancel(id)).toMatchObject({ status: 409, json: failure(409, 'The recovery has ended.') });
    expect((await find(id)).json.data).toEqual(cancelResponse.json.data);
    expect((await recover({ since: SINCE })).status).toBe(202);
  });
});

test('a missing recovery or one of another subscription is a 404', async () => {
  await insert();
  const { id } = (await recover({ since: SINCE })).json.data;
  subscriptionId = (await harness.newSubscription(account)).id;
  const notFound = { status: 404, json: failure(404, 'Recovery not found.') };
  for (const invalidId of [id, 'x', '%00', 'wrc_x', createId('recovery'), createId('delivery')])
    expect(await find(invalidId)).toMatchObject(notFound);
});
