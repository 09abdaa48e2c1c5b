import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@runhook/testing';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';
import { insertDelivery } from './delivery-rows.ts';

const HOUR_MS = 3_600_000;
const ZERO_COUNTS = {
  delivered_count: 0,
  failed_count: 0,
  pending_count: 0,
  cancelled_count: 0,
  attempt_count: 0,
  p50_ms: null,
  p95_ms: null,
};

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});

afterAll(() => harness.close());

const requestStatistics = async (id: string, query = '') =>
  await harness.call('GET', account.path(`/subscription/${id}/statistics${query}`), { token: account.token });

/** Creates a webhook, and returns the start of an hour by the clock of the database. */
async function createWebhook(): Promise<{ id: string; hourMs: (hoursAgo: number) => number }> {
  const { id } = await harness.newSubscription(account);
  const { rows } = await harness.database.pool.query<{ ms: string }>(
    `SELECT extract(epoch FROM date_bin('1 hour', now(), 'epoch'))::bigint * 1000 AS ms`,
  );
  return { id, hourMs: (hoursAgo) => Number(rows[0]?.ms) - hoursAgo * HOUR_MS };
}

test('the statistics list every hour, oldest first, ending with the current one', async () => {
  const { id, hourMs } = await createWebhook();
  const { status, json } = await requestStatistics(id);
  expect(status).toBe(200);
  const { since, until, totals, buckets } = json.data;
  expect(totals).toEqual(ZERO_COUNTS);
  expect(buckets).toHaveLength(24);
  expect(since).toBe(`${hourMs(23)}000`);
  for (const [index, bucket] of buckets.entries())
    expect(bucket).toEqual({ hour_start: `${hourMs(23 - index)}000`, ...ZERO_COUNTS });
  expect(Number(until)).toBeGreaterThanOrEqual(hourMs(0) * 1000);
});

test('deliveries are counted by hour of creation and status, with latencies by nearest rank', async () => {
  const { id, hourMs } = await createWebhook();
  const delivery = { subscriptionId: id, accountId: account.id };
  const insert = (hoursAgo: number, fields: object) => {
    const time = new Date(hourMs(hoursAgo) + 1_000);
    return insertDelivery(harness.database, {
      ...delivery,
      eventTime: time,
      createdAt: time.toISOString(),
      ...fields,
    });
  };
  const delivered = { status: 'delivered', attemptCount: 1, httpStatusCode: 200 };
  for (let durationMs = 1; durationMs <= 20; durationMs++) await insert(2, { ...delivered, durationMs });
  await insert(3, { ...delivered, durationMs: 700, attemptCount: 3 });
  await insert(3, { status: 'failed', attemptCount: 6, httpStatusCode: 504, durationMs: 10_000 });
  await insert(3, { status: 'failed', attemptCount: 6, httpStatusCode: 502, durationMs: 1 });
  const fromEndpoint = {
    status: 'failed',
    attemptCount: 1,
    httpStatusCode: 502,
    errorCode: 'unsuccessful_status',
  };
  await insert(4, { ...fromEndpoint, durationMs: 40 });
  await insert(4, { ...fromEndpoint, errorCode: 'connection_refused', durationMs: 1 });
  await insert(3, { status: 'cancelled', attemptCount: 0, httpStatusCode: 0 });
  await insert(0, { status: 'pending', attemptCount: 0, httpStatusCode: 0 });
  await insert(30, { ...delivered, durationMs: 5 });
  const { data } = (await requestStatistics(id)).json as Json;
  const byHour = (hoursAgo: number) =>
    data.buckets.find(({ hour_start }: Json) => hour_start === `${hourMs(hoursAgo)}000`);
  expect(byHour(2)).toMatchObject({ delivered_count: 20, attempt_count: 20, p50_ms: 10, p95_ms: 19 });
  // A 502 without a response of the endpoint has no latency; a timeout has.
  expect(byHour(3)).toMatchObject({
    delivered_count: 1,
    failed_count: 2,
    cancelled_count: 1,
    attempt_count: 15,
    p50_ms: 700,
    p95_ms: 10_000,
  });
  // A 502 that the endpoint returned has a latency.
  expect(byHour(4)).toMatchObject({ failed_count: 2, p50_ms: 40, p95_ms: 40 });
  expect(byHour(0)).toMatchObject({ pending_count: 1, p50_ms: null, p95_ms: null });
  expect(data.totals).toEqual({
    delivered_count: 21,
    failed_count: 4,
    pending_count: 1,
    cancelled_count: 1,
    attempt_count: 37,
    p50_ms: 12,
    p95_ms: 700,
  });
  expect((await requestStatistics(id, '?hours=31')).json.data.totals.delivered_count).toBe(22);
});

test('the statistics count only deliveries of the webhook, and other accounts get a 404', async () => {
  const { id } = await createWebhook();
  const otherWebhook = await createWebhook();
  await insertDelivery(harness.database, { subscriptionId: otherWebhook.id, accountId: account.id });
  expect((await requestStatistics(id)).json.data.totals).toEqual(ZERO_COUNTS);
  const otherAccount = await harness.newAccount();
  const path = otherAccount.path(`/subscription/${id}/statistics`);
  expect((await harness.call('GET', path, { token: otherAccount.token })).status).toBe(404);
});

test.each(['0', '169', '1.5', 'x', ''])('hours=%s is a 400 that names the parameter', async (hours) => {
  const { id } = await createWebhook();
  const { status, json } = await requestStatistics(id, `?hours=${hours}`);
  expect(status).toBe(400);
  expect(json.status.errors).toEqual([{ field: 'hours', message: 'must be an integer between 1 and 168' }]);
});

test('statistics read only the days of the requested hours and of the 24 hours before them', async () => {
  // Creating partitions reads them, too, so it is completed before the scans are counted.
  const client = await harness.database.pool.connect();
  await client.query('SELECT ensure_day_partitions(current_date - 20, current_date + 2)');
  await client.query('SELECT pg_stat_force_next_flush()');
  client.release();
  const { id, hourMs } = await createWebhook();
  const scansBefore = await scansByDay();
  await requestStatistics(id);
  const read = await eventually(async () => {
    const days = [...(await scansByDay())].filter(([day, scans]) => scans > (scansBefore.get(day) ?? 0));
    expect(days).not.toHaveLength(0);
    return days.map(([day]) => day);
  });
  // Includes the day before the first hour, because an event's id may be that much older than its delivery.
  const firstDay = new Date(hourMs(23 + 24)).toISOString().slice(0, 10).replaceAll('-', '');
  expect(scansBefore.size).toBeGreaterThan(20);
  expect(read.filter((day) => day < firstDay)).toEqual([]);
});

/** Returns how often each day of deliveries was scanned, from the server's statistics. */
async function scansByDay(): Promise<Map<string, number>> {
  const { rows } = await harness.database.pool.query<{ day: string; scans: number }>(
    `SELECT right(relname, 8) AS day, (seq_scan + coalesce(idx_scan, 0))::int AS scans
     FROM pg_stat_user_tables WHERE relname ~ '^deliveries_[0-9]{8}$'`,
  );
  return new Map(rows.map(({ day, scans }) => [day, scans]));
}

test('one response has the hourly counts of several webhooks, without those of other accounts', async () => {
  const busyWebhook = await createWebhook();
  const otherWebhook = await createWebhook();
  const quiet = await createWebhook();
  const insert = (id: string, ms: number, status: string) =>
    insertDelivery(harness.database, {
      subscriptionId: id,
      accountId: account.id,
      status,
      eventTime: new Date(ms),
      createdAt: new Date(ms).toISOString(),
    });
  const lateMs = busyWebhook.hourMs(0) + 1;
  for (const status of ['delivered', 'failed', 'failed', 'cancelled', 'pending'])
    await insert(busyWebhook.id, lateMs, status);
  await insert(busyWebhook.id, busyWebhook.hourMs(2), 'failed');
  // Before the requested hours.
  await insert(busyWebhook.id, busyWebhook.hourMs(3) + 3_599_999, 'failed');
  await insert(otherWebhook.id, busyWebhook.hourMs(1), 'delivered');
  const otherAccount = await harness.newAccount();
  const foreign = await harness.newSubscription(otherAccount);
  const ids = [busyWebhook.id, otherWebhook.id, quiet.id, foreign.id, busyWebhook.id];
  const rates = (query: string) =>
    harness.call('GET', account.path(`/statistics?${query}`), { token: account.token });
  const { status, json } = await rates(`hours=3&subscription_id=${ids.join()}`);
  expect(status).toBe(200);
  const since = `${busyWebhook.hourMs(2)}000`;
  const expected = [
    {
      subscription_id: busyWebhook.id,
      since,
      delivery_count: 6,
      failed_count: 3,
      delivery_counts: [1, 0, 5],
      failed_counts: [1, 0, 2],
    },
    {
      subscription_id: otherWebhook.id,
      since,
      delivery_count: 1,
      failed_count: 0,
      delivery_counts: [0, 1, 0],
      failed_counts: [0, 0, 0],
    },
    {
      subscription_id: quiet.id,
      since,
      delivery_count: 0,
      failed_count: 0,
      delivery_counts: [0, 0, 0],
      failed_counts: [0, 0, 0],
    },
  ];
  expect(json.data).toEqual(expected.sort((a, b) => (a.subscription_id < b.subscription_id ? -1 : 1)));
  expect((await rates(`subscription_id=${foreign.id}`)).json.data).toEqual([]);
});

test('the hourly counts of several webhooks require ids of webhooks', async () => {
  const problems = async (query: string) => {
    const { status, json } = await harness.call('GET', account.path(`/statistics${query}`), {
      token: account.token,
    });
    return [status, json.status.errors.map(({ message }: Json) => message)];
  };
  expect(await problems('')).toEqual([400, ['must be given']]);
  const invalidIds = 'must be up to 100 ids of webhooks, separated by commas';
  expect(await problems('?subscription_id=7')).toEqual([400, [invalidIds]]);
  expect(await problems('?subscription_id=&hours=0')).toEqual([
    400,
    [expect.stringContaining('between 1 and 168'), invalidIds],
  ]);
});
