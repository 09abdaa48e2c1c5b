import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createId, type EventType, type JobRunEvent, renderPayload } from '@runhook/contract';
import { EVENT_COLUMNS, type Pool, type Transaction, unnestSql, unnestValues } from '@runhook/database';
import { EXAMPLE_JOB, eventually, exampleEvent } from '@runhook/testing';
import { FEED_START } from '../../src/feed/cursor.ts';
import { readFeedPage } from '../../src/feed/page.ts';
import { FeedStateReader } from '../../src/feed/state.ts';
import { FeedWaits } from '../../src/feed/waits.ts';
import { failure, type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let subscription: { id: string; name: string };

beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

beforeEach(async () => {
  account = await harness.newAccount();
  subscription = await harness.newSubscription(account, { client_url: '' });
});

const DAY_MS = 86_400_000;
const pool = (): Pool => harness.database.pool;

/** Makes an event; `daysAgo` is the age of its id. */
function eventOf(eventType: EventType, { runId = 1, daysAgo = 0, jobId = EXAMPLE_JOB.id } = {}): JobRunEvent {
  const job = { ...EXAMPLE_JOB, id: jobId, account_id: account.id };
  const event = exampleEvent(eventType, job, runId);
  return { ...event, eventId: createId('event', Date.now() - daysAgo * DAY_MS) };
}

const INSERT = `
  INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
  SELECT * FROM ${unnestSql(EVENT_COLUMNS, 1, 'e')}`;

async function insert(events: JobRunEvent[], client: Pool | Transaction = pool()): Promise<void> {
  await client.query(
    INSERT,
    unnestValues(
      EVENT_COLUMNS,
      events.map((event) => ({ event })),
    ),
  );
}

interface Page {
  status: number;
  json: Json;
  ids: string[];
  next: string;
}

async function read(query: Record<string, string | number> = {}, id = subscription.id): Promise<Page> {
  const search = new URLSearchParams(query as Record<string, string>);
  const path = account.path(`/subscription/${id}/events?${search}`);
  const { status, json } = await harness.call('GET', path, { token: account.token });
  const ids = (json.data ?? []).map?.(({ eventId }: { eventId: string }) => eventId) ?? [];
  return { status, json, ids, next: json.extra?.pagination.next_after ?? '' };
}

/** Reads until the feed has as many events: other tests on the server may have open transactions. */
const readAll = (count: number) =>
  eventually(async () => {
    const page = await read({ limit: 100 });
    expect(page.ids).toHaveLength(count);
    return page;
  });

test('the feed has the payloads of the events that match, and a cursor that continues after them', async () => {
  const other = await harness.newSubscription(account, {
    client_url: '',
    event_types: ['job.run.completed'],
    filters: { run_statuses: [20] },
  });
  const events = [eventOf('job.run.completed', { runId: 1 }), eventOf('job.run.errored', { runId: 2 })];
  for (const event of [eventOf('job.run.started'), ...events]) await insert([event]);
  const { json } = await readAll(2);
  expect(json.data.map((payload: object) => JSON.stringify(payload))).toEqual(
    events.map((event) => renderPayload(event, subscription)),
  );
  const first = await read({ limit: 1 });
  expect(first.json.extra).toMatchObject({ pagination: { count: 1, has_more: true }, filters: { limit: 1 } });
  const second = await read({ after: first.next, limit: 1 });
  expect([...first.ids, ...second.ids]).toEqual(events.map(({ eventId }) => eventId));
  const third = await read({ after: second.next });
  expect(third.json).toMatchObject({ data: [], extra: { pagination: { count: 0, has_more: false } } });
  expect((await read({}, other.id)).ids).toEqual([]);
});

test('a page of events that do not match is empty and has a new cursor', async () => {
  await insert(Array.from({ length: 1_050 }, (_, runId) => eventOf('job.run.started', { runId: runId + 1 })));
  await insert([eventOf('job.run.errored')]);
  const first = await eventually(async () => {
    const page = await read();
    expect(page.json).toMatchObject({ data: [], extra: { pagination: { has_more: true } } });
    return page;
  });
  await eventually(async () => expect((await read({ after: first.next })).ids).toHaveLength(1));
});

test('a page ends after some megabytes or seconds, also if no event matches', async () => {
  const large = Array.from({ length: 24 }, (_, index) => {
    const event = eventOf('job.run.started', { runId: index + 1 });
    return { ...event, data: { ...event.data, runReason: 'x'.repeat(400_000) } } as JobRunEvent;
  });
  await insert(large);
  await insert([eventOf('job.run.errored')]);
  await eventually(async () => {
    const first = await read();
    expect(first.json).toMatchObject({ data: [], extra: { pagination: { has_more: true } } });
    expect((await read({ after: first.next })).ids).toHaveLength(1);
  });
  let readCount = 0;
  let nowMs = 0;
  const page = await readFeedPage(pool(), {
    accountId: account.id,
    from: FEED_START,
    horizon: 2n ** 62n,
    limit: 100,
    nowMs: () => nowMs,
    itemOf() {
      readCount += 1;
      nowMs = 60_000;
      return null;
    },
  });
  expect(page.hasMore).toBe(true);
  expect(readCount).toBe(2);
});

test('a cursor inside the log has the time of its event, one at the end that of the page', async () => {
  await insert([eventOf('job.run.errored')]);
  await insert([eventOf('job.run.errored', { runId: 2 })]);
  await readAll(2);
  const { rows } = await pool().query(
    `UPDATE events SET created_at = created_at - interval '12 hours' WHERE account_id = $1
     RETURNING floor(extract(epoch FROM created_at))::int AS seconds`,
    [account.id],
  );
  const sinceOf = ({ next }: Page) => Number(next.split('.')[2]);
  const first = await read({ limit: 1 });
  expect(rows.map(({ seconds }) => seconds)).toContain(sinceOf(first));
  expect(sinceOf(await read({ after: first.next }))).toBeGreaterThan(sinceOf(first) + 3_600);
});

test('a wait passes events that do not match once, and ends with one that does', async () => {
  const state = new FeedStateReader({ database: pool() });
  const waits = new FeedWaits({ database: pool(), state, pollIntervalMs: () => 1 });
  const evaluated: string[] = [];
  const target = {
    accountId: account.id,
    from: FEED_START,
    matches({ eventId, eventType }: JobRunEvent) {
      evaluated.push(eventId);
      return eventType === 'job.run.errored';
    },
  };
  const waiting = waits.wait(target, 20_000, new AbortController().signal);
  const events = [eventOf('job.run.started'), eventOf('job.run.completed'), eventOf('job.run.errored')];
  for (const [index, event] of events.entries()) {
    await insert([event]);
    await eventually(async () => expect(evaluated).toHaveLength(index + 1));
  }
  expect(await waiting).toBe(true);
  expect(evaluated).toEqual(events.map(({ eventId }) => eventId));
});

test('a request that waits counts once towards the limit of requests', async () => {
  // The creation of the webhook was the first.
  const second = await harness.startSecond({ apiRateLimitPerMinute: 2 });
  const path = account.path(`/subscription/${subscription.id}/events?after=latest&wait=20`);
  let isDone = false;
  const waiting = second.call('GET', path, { token: account.token }).finally(() => {
    isDone = true;
  });
  await eventually(async () => {
    await insert([eventOf('job.run.errored')]);
    expect(isDone).toBe(true);
  });
  const { status, json } = await waiting;
  expect([status, json.data?.length > 0]).toEqual([200, true]);
  await second.close();
});

test('no page passes an open transaction, and none leaves out an event', async () => {
  const client = await pool().connect();
  try {
    await client.query('BEGIN');
    const early = eventOf('job.run.errored', { runId: 1 });
    await insert([early], client);
    const late = eventOf('job.run.errored', { runId: 2, daysAgo: 3 });
    await insert([late]);
    const latest = await read({ after: 'latest' });
    expect((await read()).ids).toEqual([]);
    const waiting = read({ after: latest.next, wait: 20, limit: 1 });
    await client.query('COMMIT');
    const page = await waiting;
    expect(page.ids).toEqual([early.eventId]);
    await eventually(async () =>
      expect((await read({ after: page.next, wait: 1 })).ids).toEqual([late.eventId]),
    );
  } finally {
    client.release(true);
  }
});

test('waiting requests end with the service, and too many are a 429', async () => {
  const second = await harness.startSecond();
  const path = account.path(`/subscription/${subscription.id}/events?after=latest&wait=20`);
  const call = () => second.call('GET', path, { token: account.token });
  const waiting = Array.from({ length: 101 }, call);
  expect((await Promise.race(waiting)).status).toBe(429);
  await second.close();
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(100);
});

test('an inactive webhook has no feed until it is active again', async () => {
  const path = account.path(`/subscription/${subscription.id}`);
  const put = (active: boolean) =>
    harness.call('PUT', path, {
      token: account.token,
      body: { name: 'Feed', event_types: ['job.run.errored'], client_url: '', active },
    });
  await put(false);
  const message = 'The webhook is inactive: activate it to read its feed.';
  expect(await read()).toMatchObject({ status: 409, json: failure(409, message) });
  await insert([eventOf('job.run.errored')]);
  await put(true);
  await readAll(1);
});

test('parameters and cursors are checked, and a foreign or expired cursor is a 410 with the next one', async () => {
  await insert([eventOf('job.run.errored')]);
  const page = await readAll(1);
  for (const query of [{ after: 'x' }, { wait: 21 }, { limit: 0 }, { offset: 1 }])
    expect((await read(query)).status).toBe(400);
  const [generation = '', position, since] = page.next.split('.');
  const old = `${generation}.${position}.${Number(since) - 31 * 86_400}`;
  for (const after of [`${'0'.repeat(32)}.${position}.${since}`, old]) {
    const gone = await read({ after });
    expect(gone.status).toBe(410);
    expect((await read({ after: gone.json.data.next_after })).ids).toEqual(page.ids);
  }
  expect(
    (
      await harness.call('GET', account.path(`/subscription/${createId('subscription')}/events`), {
        token: account.token,
      })
    ).status,
  ).toBe(404);
});

test('after a failover, cursors of positions that it may have undone are a 410, and others continue', async () => {
  await insert([eventOf('job.run.errored', { runId: 1 })]);
  const before = await readAll(1);
  await insert([eventOf('job.run.errored', { runId: 2 })]);
  const after = await readAll(2);
  const position = (cursor: string) => cursor.split('.')[1];
  // As on a standby that was promoted: its last mark is older than the newest cursor.
  await pool().query('UPDATE feed_generations SET timeline = $1, marked_position = $2', [
    'other',
    position(before.next),
  ]);
  expect((await read({ after: before.next })).ids).toHaveLength(1);
  const gone = await read({ after: after.next });
  expect(gone.status).toBe(410);
  expect((await read({ after: gone.json.data.next_after })).ids).toEqual(after.ids.slice(1));
  expect((await read()).ids).toEqual(after.ids);
});

test('a webhook without an endpoint cannot be tested, redelivered or recovered, and has no incident', async () => {
  const { token } = account;
  const path = account.path(`/subscription/${subscription.id}`);
  const message = 'The webhook has no endpoint: its events are in its feed.';
  const rejected = { status: 409, json: failure(409, message) };
  expect(await harness.call('GET', `${path}/test`, { token })).toMatchObject(rejected);
  const body = { since: '2026-01-01' };
  expect(await harness.call('POST', `${path}/recover`, { token, body })).toMatchObject(rejected);
  expect((await harness.call('GET', path, { token })).json.data.client_url).toBe('');
});

const COMMITTERS = 4;
const EVENTS_EACH = 40;

test('a consumer that restarts reads every event of four committers with ids of any day', async () => {
  const expected: string[] = [];
  const commit = async (committer: number) => {
    for (let count = 0; count < EVENTS_EACH; count += 4) {
      const events = Array.from({ length: 4 }, (_, index) =>
        eventOf('job.run.errored', {
          runId: committer * 1_000 + count + index + 1,
          daysAgo: (count + index) % 5,
        }),
      );
      expected.push(...events.map(({ eventId }) => eventId));
      await insert(events);
    }
  };
  const seen: string[] = [];
  const client = await pool().connect();
  try {
    await client.query('BEGIN');
    const slow = eventOf('job.run.errored');
    await insert([slow], client);
    expected.push(slow.eventId);
    const committed = Promise.all(Array.from({ length: COMMITTERS }, (_, index) => commit(index + 1)));
    let stored = '';
    await eventually(async () => {
      const lost = await read({ after: stored, limit: 10 });
      // The consumer was killed before it stored the cursor of this page, and reads it again.
      const page = await read({ after: stored, limit: 10 });
      expect(page.ids.slice(0, lost.ids.length)).toEqual(lost.ids);
      seen.push(...page.ids);
      stored = page.next;
      if (seen.length === 0) {
        await committed;
        await client.query('COMMIT');
      }
      expect(seen).toHaveLength(expected.length);
    });
  } finally {
    client.release(true);
  }
  expect(new Set(seen)).toEqual(new Set(expected));
});
