import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, idDay, renderPayload } from '@runhook/contract';
import { ensureDayPartitions } from '@runhook/database';
import { failure, type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';
import {
  at,
  DAY,
  DAY_AFTER,
  type DeliveryFields,
  EVENT_TIME,
  insertAttempt,
  insertDelivery,
  microsAt,
} from './delivery-rows.ts';

let harness: Harness;
let account: TestAccount;
let subscriptionId: string;

beforeAll(async () => {
  harness = await startHarness();
  await ensureDayPartitions(harness.database.pool);
});

beforeEach(async () => {
  account = await harness.newAccount();
  subscriptionId = (await harness.newSubscription(account)).id;
});

afterAll(() => harness.close());

const insert = async (fields: Partial<DeliveryFields> = {}) =>
  await insertDelivery(harness.database, { subscriptionId, accountId: account.id, ...fields });

async function get(suffix: string, subscription = subscriptionId) {
  const { token } = account;
  return await harness.call('GET', account.path(`/subscription/${subscription}${suffix}`), { token });
}

const idsOf = ({ json }: Json) => json.data.map((one: Json) => one.id);

describe('the list of deliveries', () => {
  test('has all fields of a delivery, with U+FFFD for invalid characters of the job’s name', async () => {
    const { id, event } = await insert({
      jobName: 'Nightly \0 build',
      runId: 77,
      status: 'delivered',
      attemptCount: 2,
      httpStatusCode: 204,
      durationMs: 31,
      createdAt: '2026-11-20T10:00:00.123456Z',
      completedAt: '2026-11-20T10:00:31Z',
    });
    const { status, json } = await get('/deliveries');
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        data: [
          {
            id,
            subscription_id: subscriptionId,
            event_id: event.eventId,
            event_type: 'job.run.completed',
            job_id: event.data.jobId,
            job_name: 'Nightly \ufffd build',
            run_id: '77',
            status: 'delivered',
            reason: null,
            attempt_count: 2,
            http_status_code: '204',
            error_code: null,
            created_at: '1795168800123456',
            completed_at: '1795168831000000',
            next_attempt_at: null,
            duration_ms: 31,
          },
        ],
        status: { code: 200 },
        extra: { pagination: { total_count: 1, count: 1 }, filters: { offset: 0, limit: 10 } },
      },
    });
  });

  test('has null and "0" for values that do not exist yet', async () => {
    await insert({
      status: 'pending',
      attemptCount: 0,
      httpStatusCode: 0,
      nextAttemptAt: '2026-11-20T10:00:00Z',
    });
    await insert({ status: 'cancelled', reason: 'inactive', eventTime: new Date(Date.now() - 60_000) });
    expect((await get('/deliveries')).json.data).toMatchObject([
      {
        status: 'pending',
        http_status_code: '0',
        completed_at: null,
        next_attempt_at: '1795168800000000',
        duration_ms: null,
      },
      { status: 'cancelled', reason: 'inactive' },
    ]);
  });

  test('names the rate limit of the webhook while deliveries in its lane wait for it', async () => {
    await insert({ status: 'delivered' });
    await insert({ status: 'pending', nextAttemptAt: '2026-11-20T10:00:00Z' });
    const waiting = await insert({ status: 'pending' });
    const { pool } = harness.database;
    const change = (sql: string) => pool.query(`${sql} WHERE id = $1`, [subscriptionId]);
    const setLimitedAt = (time: string) =>
      pool.query(
        `INSERT INTO rate_buckets VALUES ($1, 0, now(), ${time})
         ON CONFLICT (subscription_id) DO UPDATE SET limited_at = EXCLUDED.limited_at`,
        [subscriptionId],
      );
    const waitsFor = async () => {
      const { json } = await get('/deliveries');
      const one = (await get(`/delivery/${waiting.id}`)).json.data;
      const { json: log } = await harness.call('GET', account.path('/deliveries'), { token: account.token });
      const listed = [...json.data, one, ...log.data].filter((row: Json) => row.waiting_for !== undefined);
      return listed.map((row: Json) => ({ id: row.id, waiting_for: row.waiting_for }));
    };
    const row = { id: waiting.id, waiting_for: { kind: 'rate_limit' } };
    await change('UPDATE subscriptions SET rate_limit = 5');
    expect(await waitsFor()).toEqual([]);
    await setLimitedAt('now()');
    expect(await waitsFor()).toEqual([row, row, row]);
    await setLimitedAt(`now() - interval '2 minutes'`);
    expect(await waitsFor()).toEqual([]);
    await setLimitedAt('now()');
    await change(`UPDATE subscriptions SET blocked_until = now() + interval '1 hour'`);
    expect(await waitsFor()).toEqual([]);
    await change('UPDATE subscriptions SET blocked_until = NULL, rate_limit = NULL');
    expect(await waitsFor()).toEqual([]);
  });

  test('names the earlier delivery of its run that a delivery to an ordered webhook waits for, and those out of order', async () => {
    const { id, event } = await insert({ eventType: 'job.run.started', status: 'pending' });
    const { id: waiting } = await insert({ status: 'pending', eventTime: new Date(Date.now() - 1_000) });
    const { pool } = harness.database;
    await pool.query(`UPDATE deliveries SET out_of_order = true WHERE id = $1`, [id]);
    const wait = `UPDATE deliveries SET deferred_at = $2, waits_for_event_id = $3, waits_for_event_type = $4 WHERE id = $1`;
    await pool.query(wait, [waiting, 'infinity', event.eventId, event.eventType]);
    const expected = { kind: 'order', event_type: 'job.run.started', delivery_id: id };
    const { data } = (await get('/deliveries')).json;
    expect(data).toMatchObject([
      { id, out_of_order: true },
      { id: waiting, waiting_for: expected },
    ]);
    expect(data[0]).not.toHaveProperty('waiting_for');
    expect(data[1]).not.toHaveProperty('out_of_order');
    expect((await get(`/delivery/${waiting}`)).json.data).toMatchObject({ waiting_for: expected });
    // It is released.
    await pool.query('UPDATE deliveries SET deferred_at = now() WHERE id = $1', [waiting]);
    expect((await get(`/delivery/${waiting}`)).json.data).not.toHaveProperty('waiting_for');
  });

  test('is sorted newest first across days, in pages, with the total', async () => {
    const ids: string[] = [];
    for (let hours = 0; hours < 60; hours += 5) {
      ids.push((await insert({ eventTime: new Date(Date.now() - hours * 3_600_000) })).id);
    }
    const firstPage = await get('/deliveries');
    expect(idsOf(firstPage)).toEqual(ids.slice(0, 10));
    expect(firstPage.json.extra.pagination).toEqual({ total_count: 12, count: 10 });
    const second = await get('/deliveries/?limit=5&offset=9');
    expect(idsOf(second)).toEqual(ids.slice(9));
    expect(second.json.extra).toEqual({
      pagination: { total_count: 12, count: 3 },
      filters: { offset: 9, limit: 5 },
    });
    expect((await get('/deliveries?offset=12')).json.extra.pagination).toEqual({ total_count: 12, count: 0 });
  });

  test('is filtered by status, event type and run, also combined', async () => {
    const failed = await insert({ status: 'failed', runId: 1, eventType: 'job.run.started' });
    const delivered = await insert({ status: 'delivered', runId: 1, eventType: 'job.run.errored' });
    const pending = await insert({ status: 'pending', runId: 2, eventType: 'job.run.errored' });
    const sortedIds = async (query: string) => idsOf(await get(`/deliveries?${query}`)).sort();
    expect(await sortedIds('status=failed')).toEqual([failed.id]);
    expect(await sortedIds('event_type=job.run.errored')).toEqual([delivered.id, pending.id].sort());
    expect(await sortedIds('run_id=1')).toEqual([failed.id, delivered.id].sort());
    expect(await sortedIds('run_id=1&event_type=job.run.errored')).toEqual([delivered.id]);
    expect(await sortedIds('run_id=2&status=delivered')).toEqual([]);
    expect((await get('/deliveries?status=pending')).json.extra.pagination.total_count).toBe(1);
  });

  test('is filtered by time, with since inclusive and until exclusive', async () => {
    const insertAt = async (time: string) =>
      (await insert({ createdAt: at(time), eventTime: EVENT_TIME })).id;
    const earlyId = await insertAt('10:00:00.000001');
    const middle = await insertAt('10:00:00.000002');
    const lateId = await insertAt('23:00:00');
    const sortedIds = async (query: string) => idsOf(await get(`/deliveries?${query}`)).sort();
    const [firstPage, second, third] = [1, 2, 3].map((micros) => microsAt(`10:00:00.00000${micros}`));
    expect(await sortedIds(`since=${second}`)).toEqual([middle, lateId].sort());
    expect(await sortedIds(`until=${second}`)).toEqual([earlyId]);
    expect(await sortedIds(`since=${firstPage}&until=${third}`)).toEqual([earlyId, middle].sort());
    expect(await sortedIds(`since=${at('10:00:00.000002')}`)).toEqual([middle, lateId].sort());
    expect(await sortedIds(`since=${encodeURIComponent(`${DAY}T12:00:01+02:00`)}`)).toEqual([lateId]);
    expect(await sortedIds(`since=${DAY}&until=${DAY_AFTER}`)).toEqual([earlyId, middle, lateId].sort());
    expect(await sortedIds(`until=${DAY}`)).toEqual([]);
  });

  test('omits deliveries of other subscriptions', async () => {
    const otherSubscriptionId = (await harness.newSubscription(account)).id;
    await insert({ subscriptionId: otherSubscriptionId });
    const list = await get('/deliveries');
    expect(list.json.data).toEqual([]);
    expect(list.json.extra.pagination).toEqual({ total_count: 0, count: 0 });
  });
});

describe('a single delivery', () => {
  test('has the exact body with the former name of the webhook, and all attempts in order', async () => {
    const { id, day, event } = await insert({ webhookName: 'Before "renaming"' });
    await insertAttempt(harness.database, {
      day,
      deliveryId: id,
      number: 2,
      columns: { trigger: 'manual', first_byte_ms: 7, total_ms: 9 },
    });
    await insertAttempt(harness.database, {
      day,
      deliveryId: id,
      number: 1,
      columns: {
        http_status_code: 504,
        error_code: 'timeout',
        error_message: 'Timed out after 10 s.',
        response_headers: null,
        response_body: null,
      },
    });
    const { status, json } = await get(`/delivery/${id}/`);
    expect(status).toBe(200);
    const [inList] = (await get('/deliveries')).json.data;
    const common = { started_at: '1795168800123456', duration_ms: 12, response_truncated: false };
    expect(json).toEqual({
      data: {
        ...inList,
        payload: renderPayload(event, { id: subscriptionId, name: 'Before "renaming"' }),
        attempts: [
          {
            ...common,
            number: 1,
            trigger: 'automatic',
            http_status_code: '504',
            error: { code: 'timeout', message: 'Timed out after 10 s.' },
            request_headers: { authorization: '***' },
            response_headers: null,
            response_body: null,
            timings: null,
          },
          {
            ...common,
            number: 2,
            trigger: 'manual',
            http_status_code: '200',
            error: null,
            request_headers: { authorization: '***' },
            response_headers: { 'content-type': 'text/plain' },
            response_body: 'ok',
            timings: { dns_ms: null, connect_ms: null, tls_ms: null, first_byte_ms: 7, total_ms: 9 },
          },
        ],
      },
      status: { code: 200 },
    });
  });

  test('is found only under its own subscription', async () => {
    const otherSubscriptionId = (await harness.newSubscription(account)).id;
    const { id } = await insert({ subscriptionId: otherSubscriptionId });
    expect((await get(`/delivery/${id}`, otherSubscriptionId)).status).toBe(200);
    expect(await get(`/delivery/${id}`)).toMatchObject({
      status: 404,
      json: failure(404, 'Delivery not found.'),
    });
  });

  test('is found by the day in its id, even if that day has no separate partition', async () => {
    const eventTime = new Date(Date.now() - 20 * 86_400_000);
    const { id, day } = await insert({ eventTime });
    expect(idDay('delivery', id)).toBe(day);
    expect((await get(`/delivery/${id}`)).json.data.attempts).toEqual([]);
    const unknown = deliveryIdFor(createId('event', eventTime.getTime()), subscriptionId);
    expect((await get(`/delivery/${unknown}`)).status).toBe(404);
  });
});
