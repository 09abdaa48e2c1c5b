import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import type { Pool, Statement } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  exampleEvent,
  seedAccount,
  seedSubscription,
  type TestAccount,
  type TestDatabase,
} from '@runhook/testing';
import type { AttemptRecord } from '../../src/record/attempts.ts';
import type { CommitResult, EventCommit, NewDelivery } from '../../src/record/commit-events.ts';
import { loadEventStates } from '../../src/record/event-states.ts';
import { commitResults, insertUndispatched } from '../log-rows.ts';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let account: TestAccount;
let subscriptions: { id: string; name: string }[];
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url });
  account = await seedAccount(database);
  const ofAccount = { accountId: account.id, clientUrl: 'http://127.0.0.1:9' };
  const kinds = ['delivered', 'pending', 'deferred', 'cancelled'];
  subscriptions = await Promise.all(kinds.map((name) => seedSubscription(database, { ...ofAccount, name })));
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

let runs = 0;
const newEvent = () => {
  runs += 1;
  return exampleEvent('job.run.started', account.jobs[0] as never, runs);
};
async function newUndispatched(): Promise<JobRunEvent> {
  const event = newEvent();
  await insertUndispatched(database, event);
  return event;
}

const startedAt = new Date('2026-01-01T00:00:00.000Z');
/** Returns the commit of an event with one delivery of each kind. */
function commitOf(event: JobRunEvent, isRecorded: boolean): EventCommit {
  const deliveries = subscriptions.map(({ id: subscriptionId, name }): NewDelivery => {
    const id = deliveryIdFor(event.eventId, subscriptionId);
    const delivered: AttemptRecord = {
      deliveryId: id,
      accountId: account.id,
      day: idDay('event', event.eventId),
      number: 1,
      trigger: 'automatic',
      startedAt,
      durationMs: 7,
      httpStatusCode: 202,
      error: null,
      requestHeaders: { 'user-agent': 'x' },
      response: { headers: { 'content-type': 'text/plain' }, body: 'ja', truncated: true },
      timings: { dnsMs: 1, connectMs: 2, tlsMs: 3, firstByteMs: 4, totalMs: 5 },
      status: 'delivered',
      reason: null,
      nextDelayMs: null,
    };
    return {
      ...{ id, subscriptionId, webhookName: name, isDeferred: name === 'deferred' || name === 'cancelled' },
      cancelReason: name === 'cancelled' ? 'its lane is full' : undefined,
      delivered: name === 'delivered' ? delivered : undefined,
    };
  });
  return { event, version: null, deliveries, plannedAtMs: performance.now() - 1_000, isRecorded };
}

/** Returns the rows without values that differ between events; timestamps are replaced, except `started_at`. */
async function storedOf({ eventId }: JobRunEvent): Promise<Record<string, unknown>[]> {
  const { rows } = await database.pool.query(
    `SELECT *, created_at < now() - interval '900 ms' AS is_backdated FROM deliveries WHERE event_id = $1 ORDER BY webhook_name`,
    [eventId],
  );
  return rows.map(({ id, event_id, run_id, started_at, ...row }) => {
    expect([id, event_id]).toEqual([deliveryIdFor(eventId, row.subscription_id), eventId]);
    expect(run_id).not.toBeNull();
    const times = Object.entries(row).map(([name, value]) => [
      name,
      value instanceof Date ? 'a time' : value,
    ]);
    return { ...Object.fromEntries(times), started_at };
  });
}

async function undispatchedIds(): Promise<string[]> {
  const { rows } = await database.pool.query('SELECT event_id FROM undispatched_events ORDER BY event_id');
  return rows.map(({ event_id }) => event_id);
}

/** Names of the statements that ran since the test began. */
const statements: (string | undefined)[] = [];
beforeEach(() => void statements.splice(0));

async function commit(...commits: EventCommit[]): Promise<CommitResult[]> {
  const { pool } = database;
  const recording = {
    connect: () => pool.connect(),
    query(statement: Statement) {
      statements.push(statement.name);
      return pool.query(statement);
    },
  };
  return await commitResults(recording as unknown as Pool, commits);
}

const withOtherData = (event: JobRunEvent) =>
  ({ ...event, data: { ...event.data, runReason: 'another reason' } }) as JobRunEvent;

test('several events are committed by one statement, whether they are on record or new', async () => {
  await commit(commitOf(await newUndispatched(), true), commitOf(await newUndispatched(), true));
  await commit(commitOf(newEvent(), false), commitOf(newEvent(), false));
  await commit({ ...commitOf(await newUndispatched(), true), deliveries: [] });
  expect(statements).toEqual(['claim-events', 'insert-events', 'claim-events']);
});

test('the commits of an event on record and of a new event write the same deliveries', async () => {
  const [recorded, inserted] = [await newUndispatched(), newEvent()];
  expect(await commit(commitOf(recorded, true))).toEqual(['claimed']);
  expect(await commit(commitOf(inserted, false))).toEqual(['claimed']);
  const rows = await storedOf(recorded);
  expect(rows).toEqual(await storedOf(inserted));
  expect(
    rows.map(({ webhook_name, status, attempt_count }) => [webhook_name, status, attempt_count]),
  ).toEqual([
    ['cancelled', 'cancelled', 0],
    ['deferred', 'pending', 0],
    ['delivered', 'delivered', 1],
    ['pending', 'pending', 0],
  ]);
  expect(rows[2]).toMatchObject({
    ...{ started_at: startedAt, http_status_code: 202, response_body: 'ja', response_truncated: true },
    ...{ dns_ms: 1, connect_ms: 2, tls_ms: 3, first_byte_ms: 4, total_ms: 5, is_backdated: true },
  });
  expect(await undispatchedIds()).toEqual([]);
});

test('an event that another process has put on record meanwhile is claimed if it is undispatched', async () => {
  const [recorded, dispatched, inserted] = [await newUndispatched(), await newUndispatched(), newEvent()];
  await commit(commitOf(dispatched, true));
  const results = await commit(
    commitOf(inserted, false),
    commitOf(dispatched, false),
    commitOf(recorded, false),
  );
  expect(results).toEqual(['claimed', 'duplicate', 'claimed']);
  for (const event of [recorded, dispatched, inserted]) expect(await storedOf(event)).toHaveLength(4);
  expect(await undispatchedIds()).toEqual([]);
});

test('an event whose id is on record with other data is a conflict, and the record does not change', async () => {
  const [undispatched, dispatched] = [await newUndispatched(), await newUndispatched()];
  await commit(commitOf(dispatched, true));
  const others = [undispatched, dispatched].map((event) => withOtherData(event));
  const states = await loadEventStates(
    database.pool,
    others.map((event) => ({ event, version: null })),
  );
  expect(states.map(({ status }) => status)).toEqual(['conflict', 'conflict']);
  expect(await commit(...others.map((event) => commitOf(event, false)))).toEqual(['conflict', 'conflict']);
  const { rows } = await database.pool.query(
    `SELECT id, data ->> 'runReason' AS reason FROM events WHERE id = ANY($1) ORDER BY id`,
    [[undispatched.eventId, dispatched.eventId]],
  );
  expect(rows.map(({ reason }) => reason)).not.toContain('another reason');
  expect(await undispatchedIds()).toEqual([undispatched.eventId]);
  await commit(commitOf(undispatched, true));
});

test('each event is claimed by one of many concurrent commits of the same events', async () => {
  const events = [await newUndispatched(), await newUndispatched(), newEvent()];
  const results = await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      const commits = events.map((event) => commitOf(event, index % 3 !== 0 && event !== events[2]));
      if (index % 2 === 0) return await commit(...commits);
      return (await commit(...commits.reverse())).reverse();
    }),
  );
  for (const index of events.keys())
    expect(results.filter((some) => some[index] === 'claimed')).toHaveLength(1);
  for (const event of events) expect(await storedOf(event)).toHaveLength(4);
});

test('a crash of PostgreSQL loses no undispatched event, because their table is in the write-ahead log', async () => {
  const { rows } = await database.pool.query(
    `SELECT relpersistence FROM pg_class WHERE oid = 'undispatched_events'::regclass`,
  );
  expect(rows).toEqual([{ relpersistence: 'p' }]);
});
