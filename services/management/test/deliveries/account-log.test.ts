import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, type EventType, sampleEvent } from '@runhook/contract';
import { ensureDayPartitions } from '@runhook/database';
import { eventually } from '@runhook/testing';
import { createAccountCounts } from '../../src/deliveries/account-counts.ts';
import { findWebhooks } from '../../src/deliveries/account-log-conditions.ts';
import { readHistogram } from '../../src/deliveries/histogram.ts';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';
import {
  at,
  DAY,
  type DeliveryFields,
  EVENT_TIME,
  insertAttempt,
  insertDelivery,
  microsAt,
} from './delivery-rows.ts';

let harness: Harness;
let account: TestAccount;
let webhooks: { id: string; name: string }[];

beforeAll(async () => {
  harness = await startHarness();
  await ensureDayPartitions(harness.database.pool);
});

beforeEach(async () => {
  account = await harness.newAccount();
  webhooks = [];
  for (const name of ['One', 'Two', 'Three']) webhooks.push(await harness.newSubscription(account, { name }));
});

afterAll(() => harness.close());

const insert = (webhook: number, fields: Partial<DeliveryFields> = {}) =>
  insertDelivery(harness.database, {
    subscriptionId: webhooks[webhook]?.id ?? '',
    accountId: account.id,
    eventTime: EVENT_TIME,
    ...fields,
  });

async function list(query = '', of = account) {
  return await harness.call('GET', of.path(`/deliveries?${query}`), { token: of.token });
}

const NO_FILTERS = {
  runId: null,
  eventId: null,
  subscriptionIds: null,
  jobId: null,
  status: null,
  eventType: null,
  httpStatusCode: null,
  errorCode: null,
  durationMinMs: null,
  durationMaxMs: null,
  since: null,
  until: null,
};

const idsOf = ({ json }: { json: Json }): string[] => json.data.map(({ id }: Json) => id);

/** Reads all pages in order. */
async function allIds(query: string): Promise<string[][]> {
  const pages: string[][] = [];
  for (let before = ''; ; ) {
    const response = await list(`${query}${before}`);
    expect(response.status).toBe(200);
    pages.push(idsOf(response));
    const { next_before } = response.json.extra.pagination;
    if (next_before === null) return pages;
    before = `&before=${encodeURIComponent(next_before)}`;
  }
}

describe('the log of an account', () => {
  test('lists deliveries of all its webhooks, newest first, with their webhooks', async () => {
    const { id: oldest } = await insert(0, { createdAt: at('10:00:00') });
    const { id: newest, event } = await insert(1, {
      createdAt: at('10:00:02.5'),
      runId: 2482,
      durationMs: 7,
    });
    const { id: middle } = await insert(2, { createdAt: at('10:00:01') });
    const otherAccount = await harness.newAccount();
    await insertDelivery(harness.database, {
      subscriptionId: (await harness.newSubscription(otherAccount)).id,
      accountId: otherAccount.id,
    });
    const response = await list();
    expect(idsOf(response)).toEqual([newest, middle, oldest]);
    expect(response.json.data[0]).toEqual({
      id: newest,
      subscription_id: webhooks[1]?.id,
      event_id: event.eventId,
      event_type: 'job.run.completed',
      job_id: event.data.jobId,
      job_name: 'Nightly',
      run_id: '2482',
      status: 'failed',
      reason: null,
      attempt_count: 6,
      http_status_code: '500',
      error_code: null,
      created_at: microsAt('10:00:02.5'),
      completed_at: null,
      next_attempt_at: null,
      duration_ms: 7,
      webhook_name: 'Two',
      webhook_state: 'active',
    });
    expect(response.json.extra).toEqual({
      pagination: { count: 3, next_before: null, scanned_until: null },
      filters: { limit: 10 },
    });
  });

  test('is paged without gaps and repetitions across days and webhooks', async () => {
    const inserted: { id: string; day: string; createdAt: string }[] = [];
    for (let number = 0; number < 23; number += 1) {
      const createdAt = new Date(EVENT_TIME.getTime() - (number % 5) * 20 * 3_600_000).toISOString();
      const { id, day } = await insert(number % 3, { createdAt, eventTime: new Date(createdAt) });
      inserted.push({ id, day, createdAt });
    }
    const key = ({ day, createdAt, id }: (typeof inserted)[number]) => `${day} ${createdAt} ${id}`;
    const expected = inserted.sort((a, b) => (key(a) < key(b) ? 1 : -1)).map(({ id }) => id);
    expect((await allIds('limit=4')).map((page) => page.length)).toEqual([4, 4, 4, 4, 4, 3]);
    expect((await allIds('limit=4')).flat()).toEqual(expected);
    expect((await allIds('limit=4&job_id=4711')).flat()).toEqual([]);
    expect((await allIds('limit=3&http_status_code=500')).flat()).toEqual(expected);
    expect((await allIds('limit=5&run_id=12345')).flat()).toEqual(expected);
  });

  test('is filtered by event, run, job, webhook, result, duration and time', async () => {
    const { id: a } = await insert(0, {
      createdAt: at('10:00:09'),
      runId: 1,
      status: 'delivered',
      httpStatusCode: 204,
    });
    const { id: b } = await insert(1, {
      createdAt: at('10:00:08'),
      runId: 2,
      errorCode: 'timeout',
      httpStatusCode: 504,
    });
    const { id: c, event } = await insert(1, {
      createdAt: at('10:00:07'),
      runId: 2,
      status: 'pending',
      eventType: 'job.run.errored',
      errorCode: 'timeout',
      durationMs: 10_000,
    });
    const { id: d } = await insert(2, {
      createdAt: at('10:00:06'),
      runId: 3,
      status: 'cancelled',
      durationMs: 20,
    });
    const narrowed: [string, string[]][] = [
      ['run_id=2', [b, c]],
      [`run_id=2&subscription_id=${webhooks[0]?.id}`, []],
      [`event_id=${event.eventId}`, [c]],
      [`event_id=${event.eventId}&status=failed`, []],
      [`subscription_id=${webhooks[0]?.id},${webhooks[2]?.id}`, [a, d]],
      ['status=delivered', [a]],
      ['status=pending', [c]],
      ['status=failed', [b]],
      ['status=cancelled', [d]],
      ['event_type=job.run.errored', [c]],
      ['http_status_code=204', [a]],
      ['http_status_code=504', [b]],
      ['error_code=timeout', [b, c]],
      ['error_code=timeout&status=failed', [b]],
      ['duration_min_ms=20', [c, d]],
      ['duration_max_ms=20', [d]],
      [`job_id=${event.data.jobId}`, [a, b, c, d]],
      [`since=${at('10:00:07')}&until=${at('10:00:09')}`, [b, c]],
      [`since=${at('10:00:07')}&status=failed`, [b]],
      [`until=${at('10:00:08')}&job_id=${event.data.jobId}`, [c, d]],
      ['since=2200-01-01', []],
      ['until=1999-01-01', []],
    ];
    for (const [query, ids] of narrowed) expect([query, idsOf(await list(query))]).toEqual([query, ids]);
  });

  test('has one code for all targets that were not called, and neither their durations nor the rule', async () => {
    // The sentences are those of release 0.1.0.
    const blocked = [
      ['address_forbidden', 'The address 10.0.0.7 is not allowed.'],
      ['port_forbidden', 'The endpoint has no address that may be called.'],
      ['dns_failed', 'The host name could not be resolved.'],
    ] as const;
    const ids: string[] = [];
    for (const [errorCode, error_message] of blocked) {
      const reason = `The only attempt failed. Last: ${error_message}`;
      const fields = { attemptCount: 1, httpStatusCode: 502, errorCode, durationMs: 40, reason };
      const { id, day } = await insert(0, fields);
      const columns = {
        http_status_code: 502,
        error_code: errorCode,
        error_message,
        dns_ms: 40,
        total_ms: 40,
      };
      await insertAttempt(harness.database, { day, deliveryId: id, number: 1, columns });
      ids.push(id);
    }
    const { id: other } = await insert(0, { httpStatusCode: 502, errorCode: 'unreachable', durationMs: 40 });

    const path = account.path(`/subscription/${webhooks[0]?.id}/delivery/`);
    const views = [];
    for (const id of ids) {
      const { json } = await harness.call('GET', `${path}${id}`, { token: account.token });
      views.push({ ...json.data, id: '', event_id: '', payload: '' });
    }
    expect(views[0]).toMatchObject({
      error_code: 'no_address',
      duration_ms: null,
      reason: 'The only attempt failed. Last: The endpoint has no address that may be called.',
      attempts: [
        {
          duration_ms: null,
          timings: null,
          error: { code: 'no_address', message: 'The endpoint has no address that may be called.' },
        },
      ],
    });
    for (const view of views) expect(view).toEqual(views[0]);
    expect(idsOf(await list('error_code=no_address')).sort()).toEqual([...ids].sort());
    for (const query of ['duration_min_ms=0', 'duration_max_ms=50'])
      expect([query, idsOf(await list(query))]).toEqual([query, [other]]);
    for (const [errorCode] of blocked) {
      const { status, json } = await list(`error_code=${errorCode}`);
      expect([status, json.status.errors[0].field]).toEqual([400, 'error_code']);
    }
  });

  test('shows the state of a webhook that is inactive or deleted', async () => {
    const { event } = await insert(0, { runId: 9, createdAt: at('10:00:01') });
    await insert(1, { runId: 9, createdAt: at('10:00:00') });
    const path = account.path(`/subscription/${webhooks[0]?.id}`);
    await harness.call('DELETE', path, { token: account.token });
    const where = { id: webhooks[1]?.id ?? '' };
    await harness.database.prisma.subscription.update({ where, data: { active: false } });
    for (const query of ['', 'run_id=9', `job_id=${event.data.jobId}`]) {
      const { json } = await list(query);
      expect(json.data.map(({ webhook_name, webhook_state }: Json) => [webhook_name, webhook_state])).toEqual(
        [
          ['One', 'deleted'],
          ['Two', 'inactive'],
        ],
      );
    }
  });

  test('rejects invalid filters by name, and callers of other accounts', async () => {
    const { status, json } = await list(
      'run_id=x&event_id=wev_1&subscription_id=wsu_1&status=no&http_status_code=-1&error_code=A&since=now&before=x&limit=0',
    );
    expect(status).toBe(400);
    expect(json.status.errors.map(({ field }: Json) => field).sort()).toEqual(
      [
        'run_id',
        'event_id',
        'subscription_id',
        'status',
        'http_status_code',
        'error_code',
        'since',
        'before',
        'limit',
      ].sort(),
    );
    const otherAccount = await harness.newAccount();
    const foreign = await harness.call('GET', account.path('/deliveries'), { token: otherAccount.token });
    expect(foreign.status).toBe(403);
    const team = await harness.newAccount({ plan: 'developer' });
    expect((await list('', team)).status).toBe(403);
    expect(idsOf(await list(`subscription_id=${createId('subscription')}`))).toEqual([]);
  });
});

describe('the histogram of an account', () => {
  const histogram = (query: string) =>
    harness.call('GET', account.path(`/deliveries/histogram?${query}`), { token: account.token });
  const hour = `since=${at('10:00:00')}&until=${at('11:00:00')}`;
  const bucketCounts = ({ json }: { json: Json }) =>
    json.data.buckets.flatMap((bucket: Json) => {
      const { start, ...counts } = bucket;
      const names = Object.entries(counts).filter(([, count]) => count !== 0);
      return names.length === 0
        ? []
        : [[new Date(Number(start) / 1_000).toISOString(), Object.fromEntries(names)]];
    });

  test('counts deliveries by status in about sixty buckets aligned to UTC, within the exact window', async () => {
    await insert(0, { createdAt: at('09:59:59.999999') });
    await insert(0, { createdAt: at('10:00:00'), status: 'delivered' });
    await insert(1, { createdAt: at('10:00:59'), status: 'delivered' });
    await insert(2, { createdAt: at('10:00:59'), status: 'pending' });
    await insert(2, { createdAt: at('10:59:59'), status: 'cancelled' });
    await insert(2, { createdAt: at('11:00:00') });
    const response = await histogram(hour);
    expect(response.json.data).toMatchObject({
      since: microsAt('10:00:00'),
      until: microsAt('11:00:00'),
      bucket_seconds: 60,
      counted_since: null,
      totals: { delivered_count: 2, failed_count: 0, pending_count: 1, cancelled_count: 1 },
    });
    expect(response.json.data.buckets).toHaveLength(60);
    expect(bucketCounts(response)).toEqual([
      [at('10:00:00.000'), { delivered_count: 2, pending_count: 1 }],
      [at('10:59:00.000'), { cancelled_count: 1 }],
    ]);
  });

  test('has the same counts as the list with the same filters', async () => {
    const { event } = await insert(0, {
      createdAt: at('10:00:01'),
      status: 'delivered',
      httpStatusCode: 200,
      runId: 5,
    });
    await insert(1, {
      createdAt: at('10:00:02'),
      errorCode: 'timeout',
      httpStatusCode: 504,
      durationMs: 9_000,
    });
    await insert(1, {
      createdAt: at('10:00:03'),
      status: 'pending',
      errorCode: 'timeout',
      eventType: 'job.run.started',
    });
    await insert(2, { createdAt: at('10:00:04'), status: 'cancelled', runId: 5 });
    const allCounts = [
      '',
      'status=delivered',
      'status=failed',
      'status=pending',
      'status=cancelled',
      'error_code=timeout',
      'http_status_code=200',
      'http_status_code=504',
      'duration_min_ms=100',
      'event_type=job.run.started',
      'event_type=job.run.completed&status=delivered',
      'run_id=5',
      'run_id=5&status=cancelled',
      `event_id=${event.eventId}`,
      `job_id=${event.data.jobId}`,
      `subscription_id=${webhooks[1]?.id}`,
    ];
    for (const query of allCounts) {
      const rows = (await list(`limit=100&${hour}&${query}`)).json.data;
      const count = (status: string) => rows.filter((row: Json) => row.status === status).length;
      expect([query, (await histogram(`${hour}&${query}`)).json.data.totals]).toEqual([
        query,
        {
          delivered_count: count('delivered'),
          failed_count: count('failed'),
          pending_count: count('pending'),
          cancelled_count: count('cancelled'),
        },
      ]);
    }
  });

  test('reads only the ends of the window if half-hours are cached, with the same result', async () => {
    const { pool } = harness.database;
    const hours = 3_600_000_000;
    const now = Date.now() * 1_000;
    const created = [0.01, 0.2, 1.1, 1.4, 5, 23.9, 24.3].map((ago) => String(now - ago * hours));
    for (const [index, createdAt] of created.entries())
      await insert(index % 2, {
        createdAt: new Date(Number(createdAt) / 1_000).toISOString(),
        status: index === 3 ? 'failed' : 'delivered',
      });
    const window = { since: BigInt(now - 24 * hours), until: BigInt(now) };
    const counts = createAccountCounts(pool, -1);
    const read = async (subscriptionIds: string[] | null) => {
      const filters = { ...NO_FILTERS, subscriptionIds };
      const of = await findWebhooks(pool, account.id, filters);
      return await readHistogram(pool, counts, { accountId: account.id, webhooks: of, filters, window });
    };
    const before = await read(null);
    expect(before.totals).toMatchObject({ delivered_count: 5, failed_count: 1 });
    const cachedSlots = await eventually(() => {
      const cachedCounts = counts.getCached(account.id);
      expect(cachedCounts).not.toBeNull();
      return cachedCounts as NonNullable<typeof cachedCounts>;
    });
    expect([...cachedSlots.byWebhook.values()].map(({ length }) => length / 2).sort()).toEqual([0, 2, 3]);
    expect(await read(null)).toEqual(before);
    await insert(2, { status: 'delivered' });
    const webhookId = webhooks[0]?.id ?? '';
    expect((await read([webhookId])).totals).toMatchObject({ delivered_count: 3, failed_count: 0 });
    // Cached half-hours are not read, so a new row in a completed one is not counted until the cache is refreshed.
    await insert(0, { createdAt: new Date(Date.now() - 10 * 3_600_000).toISOString(), status: 'delivered' });
    expect((await read([webhookId])).totals).toMatchObject({ delivered_count: 3 });
  });

  test.each([
    ['1 h', 3_600, 60, 60],
    ['6 h', 6 * 3_600, 300, 72],
    ['24 h', 86_400, 1_800, 48],
    ['7 d', 7 * 86_400, 10_800, 56],
    ['30 d', 30 * 86_400, 43_200, 60],
    ['90 d', 90 * 86_400, 172_800, 46],
  ])('for a window of %s (%d s) has buckets of %d s, about %d in all', async (_, seconds, width, bars) => {
    const until = Date.parse(`${DAY}T00:00:00Z`) / 1_000;
    const { json } = await histogram(`since=${until - seconds}000000&until=${until}000000`);
    expect(json.data.bucket_seconds).toBe(width);
    expect(Math.abs(json.data.buckets.length - bars)).toBeLessThanOrEqual(1);
  });

  test('rejects a window that ends before it begins and one of several years', async () => {
    for (const query of [
      `since=${at('11:00:00')}&until=${at('10:00:00')}`,
      'since=2020-01-01&until=2026-01-01',
    ])
      expect((await histogram(query)).status).toBe(400);
  });
});

describe('the events of a run', () => {
  const events = async (runId: number | string, of = account) =>
    await harness.call('GET', of.path(`/run/${runId}/events`), { token: of.token });
  const report = async (path: string, body: object = {}) =>
    await harness.call('POST', `/api/v2/accounts/${account.id}/runs/${path}`, { token: account.token, body });
  const eventSummaries = ({ json }: { json: Json }) =>
    json.data.map(({ event_type, state, delivery_count }: Json) => [event_type, state, delivery_count]);

  test('include those without deliveries, and an undispatched event is waiting', async () => {
    const jobId = await harness.newJob(account);
    await report('', { job_id: jobId, run_id: 2482, engine_version: '1.9' });
    expect(eventSummaries(await events(2482))).toEqual([['job.run.started', 'waiting', 0]]);
    await report('2482/finish/', { status: 'errored' });
    await report('2482/artifacts/');
    await harness.database.pool.query('DELETE FROM undispatched_events');
    const { event } = await insert(0, { runId: 2482, eventType: 'job.run.errored', eventTime: new Date() });
    const id = deliveryIdFor(event.eventId, webhooks[1]?.id ?? '');
    await harness.database.pool.query(
      `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name)
       SELECT day, $1, account_id, $2, event_id, event_type, job_id, run_id, 'Two' FROM deliveries WHERE event_id = $3`,
      [id, webhooks[1]?.id, event.eventId],
    );
    const response = await events(2482);
    expect(eventSummaries(response)).toEqual([
      ['job.run.started', 'unmatched', 0],
      ['job.run.errored', 'matched', 2],
      ['job.run.completed', 'unmatched', 0],
    ]);
    expect(response.json.data[1].event_id).toBe(event.eventId);
  });

  test.each<[published: EventType[], isErrored: boolean, states: string[][]]>([
    [
      ['job.run.errored'],
      true,
      [
        ['job.run.started', 'not_reported'],
        ['job.run.errored', 'unmatched'],
      ],
    ],
    [
      ['job.run.completed'],
      true,
      [
        ['job.run.started', 'not_reported'],
        ['job.run.errored', 'not_reported'],
        ['job.run.completed', 'unmatched'],
      ],
    ],
    [
      ['job.run.errored', 'job.run.started'],
      true,
      [
        ['job.run.started', 'unmatched'],
        ['job.run.errored', 'unmatched'],
      ],
    ],
    [
      ['job.run.completed'],
      false,
      [
        ['job.run.started', 'not_reported'],
        ['job.run.completed', 'unmatched'],
      ],
    ],
    [['job.run.started'], false, [['job.run.started', 'unmatched']]],
  ])(
    'show which ones were not reported after only %j were published',
    async (published, isErrored, states) => {
      const runId = 90_000 + (await harness.newJob(account));
      for (const eventType of published) {
        const identity = { accountId: account.id, eventId: createId('event'), now: new Date() };
        const event = sampleEvent(eventType, identity);
        const run =
          eventType === 'job.run.completed' && isErrored ? { runStatus: 'Errored', runStatusCode: 20 } : {};
        const body = { events: [{ ...event, data: { ...event.data, ...run, runId: String(runId) } }] };
        const path = `/api/v2/accounts/${account.id}/events/`;
        expect((await harness.call('POST', path, { token: account.token, body })).status).toBe(202);
      }
      await harness.database.pool.query('DELETE FROM undispatched_events');
      expect(eventSummaries(await events(runId))).toEqual(states.map((state) => [...state, 0]));
    },
  );

  test('are listed although the JSON of another event of the account is invalid in PostgreSQL', async () => {
    const jobId = await harness.newJob(account);
    await report('', { job_id: jobId, run_id: 9, engine_version: '1.9' });
    await report('', { job_id: jobId, run_id: 10, engine_version: '1.9' });
    // Earlier releases stored invalid text, such as half a surrogate pair.
    await harness.database.pool.query(
      `UPDATE events SET data = replace(data::text, '"1.9"', '"1.9 \\ud83d"')::json WHERE account_id = $1 AND run_id = 10`,
      [account.id],
    );
    expect(eventSummaries(await events(9))).toEqual([['job.run.started', 'waiting', 0]]);
    expect(eventSummaries(await events(10))).toEqual([['job.run.started', 'waiting', 0]]);
    expect((await events(4711)).status).toBe(404);
  });

  test('are expired if the log does not reach back to the run', async () => {
    const jobId = await harness.newJob(account);
    await report('', { job_id: jobId, run_id: 7, engine_version: '1.9' });
    await harness.database.pool.query(`UPDATE runs SET created_at = '2020-01-01' WHERE account_id = $1`, [
      account.id,
    ]);
    await harness.database.pool.query('DELETE FROM undispatched_events');
    expect(eventSummaries(await events(7))).toEqual([['job.run.started', 'expired', 0]]);
  });

  test('are a 404 for a missing run and for a run of another account', async () => {
    await insert(0, { runId: 31 });
    expect(eventSummaries(await events(31))).toEqual([['job.run.completed', 'matched', 1]]);
    const otherAccount = await harness.newAccount();
    expect((await events(31, otherAccount)).status).toBe(404);
    expect((await events(4711)).status).toBe(404);
    expect((await events('x')).status).toBe(404);
  });
});
