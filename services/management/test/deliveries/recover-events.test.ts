import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { WEBHOOK_DELIVERIES } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { eventually } from '@runhook/testing';
import { failure, type Harness, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';
import {
  at,
  type DeliveryFields,
  EVENT_TIME,
  type EventFields,
  insertDelivery,
  insertEvent,
  microsAt,
} from './delivery-rows.ts';

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
const UNTIL = at('11:00:00');
const [TEN, ELEVEN] = [microsAt('10:00:00'), microsAt('11:00:00')];
const MICROS = expect.stringMatching(/^\d{16}$/);

const insertUnsent = (fields: Partial<EventFields> = {}) =>
  insertEvent(harness.database, {
    accountId: account.id,
    createdAt: SINCE,
    eventTime: EVENT_TIME,
    ...fields,
  });

const insertEnded = (fields: Partial<DeliveryFields>) =>
  insertDelivery(harness.database, {
    subscriptionId,
    accountId: account.id,
    createdAt: SINCE,
    eventTime: EVENT_TIME,
    completedAt: at('10:05:00'),
    ...fields,
  });

async function insertEachState(): Promise<void> {
  await insertEnded({ status: 'failed' });
  await insertEnded({ status: 'cancelled', attemptCount: 2 });
  await insertEnded({ status: 'delivered', attemptCount: 1 });
  await insertEnded({ status: 'pending', completedAt: null });
  await insertEnded({ status: 'cancelled', attemptCount: 0 });
  await insertUnsent();
}

const recover = async (body: unknown) =>
  await harness.call('POST', account.path(`/subscription/${subscriptionId}/recover`), { ...account, body });

const put = async (fields: object) => {
  const body = { ...SUBSCRIPTION_FIELDS, ...fields };
  expect(
    (await harness.call('PUT', account.path(`/subscription/${subscriptionId}`), { ...account, body })).status,
  ).toBe(200);
};

const endRecoveries = () =>
  harness.database.pool.query(`UPDATE recoveries SET status = 'done', completed_at = now()`);

describe('a dry run', () => {
  test('counts the events of a window by their state and starts nothing', async () => {
    await insertEachState();
    await insertUnsent({ createdAt: at('09:59:59.999999') });
    await insertUnsent({ createdAt: UNTIL });
    await insertUnsent({ accountId: (await harness.newAccount()).id });
    const before = await harness.rowCounts();
    const { status, json } = await recover({ since: SINCE, until: UNTIL, include: 'unsent', dry_run: true });
    const data = {
      dry_run: true,
      since: TEN,
      until: ELEVEN,
      delivery_status: null,
      include: 'unsent',
      total_count: 2,
      count_limited: false,
      counts: { unsent: 2, failed: 1, cancelled: 1, delivered: 1 },
    };
    expect({ status, json }).toEqual({ status: 200, json: { data, status: { code: 200 } } });
    expect(await harness.rowCounts()).toEqual(before);
  });

  test.each([
    [{ include: 'all' }, 4],
    [{ include: 'all', again: true }, 5],
    [{ include: 'failed' }, 1],
    [{ status: 'cancelled' }, 2],
    [{}, 1],
  ])('of %j counts as many deliveries as the recovery', async (fields, total_count) => {
    await insertEachState();
    const body = { since: SINCE, until: UNTIL, ...fields };
    expect((await recover({ ...body, dry_run: true })).json.data).toMatchObject({ total_count });
    expect((await recover(body)).json.data).toMatchObject({ total_count });
  });

  test('without a start counts the last time for which the webhook was inactive', async () => {
    const dryRun = async (fields: object = {}) =>
      (await recover({ include: 'unsent', dry_run: true, ...fields })).json.data;
    expect(await dryRun()).toMatchObject({ since: null, until: null, total_count: 0 });
    await put({ active: false });
    await insertUnsent({ createdAt: new Date().toISOString(), eventTime: new Date() });
    const inactive = await dryRun();
    expect(inactive).toMatchObject({ since: MICROS, until: MICROS, total_count: 1 });
    await put({ name: 'Another name', active: false });
    await put({ active: true });
    await put({ name: 'A third name', active: true });
    await insertUnsent({ createdAt: new Date().toISOString(), eventTime: new Date() });
    const active = await dryRun();
    expect(active).toMatchObject({ since: inactive.since, total_count: 1 });
    expect(BigInt(active.until)).toBeGreaterThan(BigInt(inactive.until));
    await harness.database.pool.query(
      `UPDATE subscriptions SET active = false, deactivate_reason = 'It failed.' WHERE id = $1`,
      [subscriptionId],
    );
    expect(BigInt((await dryRun()).since)).toBeGreaterThan(BigInt(active.until));
  });

  test('says that it stopped after 100,000 events', async () => {
    await harness.database.pool.query(
      `INSERT INTO events (day, id, account_id, event_type, "timestamp", data, created_at)
       SELECT $1::date, 'wev_' || lpad(n::text, 27, '0'), $2, 'job.run.started', '', '{"jobName": ""}', $3::timestamptz
       FROM generate_series(1, 100500) AS n`,
      [SINCE.slice(0, 10), account.id, SINCE],
    );
    const { data } = (await recover({ since: SINCE, until: UNTIL, include: 'unsent', dry_run: true })).json;
    expect(data).toMatchObject({ count_limited: true });
    expect(data.total_count).toBeLessThanOrEqual(100_000);
  });
});

describe('a recovery of events', () => {
  test('has what it includes instead of a status of deliveries', async () => {
    await insertUnsent();
    const { status, json } = await recover({ since: SINCE, until: UNTIL, include: 'unsent' });
    expect(status).toBe(202);
    expect(json.data).toEqual({
      id: expect.stringMatching(/^wrc_/),
      subscription_id: subscriptionId,
      ...{ status: 'running', reason: null, since: TEN, until: ELEVEN },
      ...{ delivery_status: null, include: 'unsent', total_count: 1, recovered_count: 0 },
      outcome: { pending: 0, delivered: 0, failed: 0, cancelled: 0 },
      ...{ created_at: MICROS, completed_at: null },
    });
    expect(await recover({ since: SINCE, include: 'all' })).toMatchObject({
      status: 409,
      json: failure(409, `The recovery ${json.data.id} of this webhook is still running.`),
    });
    await endRecoveries();
    const again = await recover({ since: SINCE, include: 'all', again: true });
    expect(again.json.data).toMatchObject({ include: 'all', again: true });
  });

  test('ends at its creation, and without matching events is done at once', async () => {
    const { data } = (await recover({ since: SINCE, until: '2999-01-01', include: 'unsent' })).json;
    expect(data).toMatchObject({ status: 'done', total_count: 0, completed_at: data.created_at });
    expect(BigInt(data.until)).toBeLessThanOrEqual(BigInt(data.created_at));
  });

  test('matches events by the current event types and jobs, whenever the webhook was created', async () => {
    await insertUnsent({ eventType: 'job.run.started' });
    await insertUnsent({ eventType: 'job.run.errored' });
    await put({ event_types: ['job.run.errored'], active: true });
    const dryRun = { since: SINCE, until: UNTIL, include: 'unsent', dry_run: true };
    expect((await recover(dryRun)).json.data).toMatchObject({ total_count: 1 });
  });

  test('does not include events whose fan-out is not committed', async () => {
    const { event } = await insertUnsent();
    await harness.database.pool.query(
      'INSERT INTO undispatched_events (day, event_id, account_id) SELECT day, id, account_id FROM events WHERE id = $1',
      [event.eventId],
    );
    const dryRun = { since: SINCE, until: UNTIL, include: 'unsent', dry_run: true };
    expect((await recover(dryRun)).json.data).toMatchObject({ total_count: 0 });
  });

  test.each([
    [{ since: SINCE, include: 'unsent', status: 'failed' }, 'include: must not be combined with status'],
    [{ since: SINCE, include: 'unsent', again: true }, 'again: requires include to be all'],
    [{ since: SINCE, include: 'none' }, 'include: must be one of failed, unsent, all'],
    [{ include: 'unsent' }, 'since: is required'],
    [{ since: SINCE, dry_run: 'yes' }, 'dry_run: must be a boolean'],
  ])('is rejected for the body %j', async (body, problem) => {
    const { status, json } = await recover(body);
    expect({ status, problem: json.status.developer_message }).toEqual({ status: 400, problem });
  });

  test('needs an active webhook, whose events can be counted before', async () => {
    await insertUnsent();
    await put({ active: false });
    const body = { since: SINCE, include: 'unsent' };
    expect((await recover({ ...body, dry_run: true })).json.data).toMatchObject({ total_count: 1 });
    expect((await recover(body)).status).toBe(409);
  });

  test('is a 409 while a dispatcher of an older release is connected, except for failed deliveries', async () => {
    const backend = createQueueBackend(harness.settings.queueUrl);
    const older = backend.createWorker(WEBHOOK_DELIVERIES, async () => undefined, {});
    try {
      await older.waitUntilReady();
      await eventually(async () =>
        expect(await recover({ since: SINCE, include: 'unsent' })).toMatchObject({
          status: 409,
          json: { status: { user_message: expect.stringContaining('which does not support include.') } },
        }),
      );
      expect((await recover({ since: SINCE, include: 'failed' })).status).toBe(202);
    } finally {
      await older.close();
    }
  });
});
