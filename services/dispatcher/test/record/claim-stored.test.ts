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
import {
  commitFanOut,
  type FanOutCommit,
  type FanOutRows,
  type NewDelivery,
} from '../../src/record/commit-fan-out.ts';
import { insertOpenEvent } from '../log-rows.ts';

/* What management has committed is claimed by a statement of its own, which says less, and does the same. */

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let account: TestAccount;
let subscriptions: { id: string; name: string }[];
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, plansByIndex: true });
  account = await seedAccount(database);
  const ofAccount = { accountId: account.id, clientUrl: 'http://127.0.0.1:9' };
  const kinds = ['delivered', 'pending', 'parked', 'cancelled'];
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
async function newOpenEvent(): Promise<JobRunEvent> {
  const event = newEvent();
  await insertOpenEvent(database, event);
  return event;
}

const startedAt = new Date('2026-01-01T00:00:00.000Z');
/** One delivery of each kind. */
function rowsOf(event: JobRunEvent, isStored: boolean): FanOutRows {
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
      ...{ id, subscriptionId, webhookName: name, isParked: name === 'parked' || name === 'cancelled' },
      cancelReason: name === 'cancelled' ? 'its lane is full' : undefined,
      delivered: name === 'delivered' ? delivered : undefined,
    };
  });
  return { event, version: null, deliveries, ageMs: 1_000, isStored };
}

/** But for what is the event's own, and times but for whether there are any. */
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

async function openIds(): Promise<string[]> {
  const { rows } = await database.pool.query('SELECT event_id FROM open_events ORDER BY event_id');
  return rows.map(({ event_id }) => event_id);
}

/** What was asked since a test began. */
const asked: (string | undefined)[] = [];
beforeEach(() => void asked.splice(0));

async function claim(...rows: FanOutRows[]): Promise<FanOutCommit[]> {
  const { pool } = database;
  const noting = {
    connect: () => pool.connect(),
    query(statement: Statement) {
      asked.push(statement.name);
      return pool.query(statement);
    },
  };
  return await commitFanOut(noting as unknown as Pool, rows);
}

test('what is usual is one statement: stored by management, published, or stored for nobody', async () => {
  await claim(rowsOf(await newOpenEvent(), true), rowsOf(await newOpenEvent(), true));
  await claim(rowsOf(newEvent(), false), rowsOf(newEvent(), false));
  await claim({ ...rowsOf(await newOpenEvent(), true), deliveries: [] });
  expect(asked).toEqual(['claim-stored', 'commit-new', 'claim-open']);
});

test('it leaves what the statement for whatever is open leaves', async () => {
  const [stored, any] = [await newOpenEvent(), await newOpenEvent()];
  expect(await claim(rowsOf(stored, true))).toEqual(['claimed']);
  expect(await claim(rowsOf(any, false))).toEqual(['claimed']);
  expect(asked).toEqual(['claim-stored', 'commit-new', 'claim-open']);
  const rows = await storedOf(stored);
  expect(rows).toEqual(await storedOf(any));
  expect(
    rows.map(({ webhook_name, status, attempt_count }) => [webhook_name, status, attempt_count]),
  ).toEqual([
    ['cancelled', 'cancelled', 0],
    ['delivered', 'delivered', 1],
    ['parked', 'pending', 0],
    ['pending', 'pending', 0],
  ]);
  expect(rows[1]).toMatchObject({
    ...{ started_at: startedAt, http_status_code: 202, response_body: 'ja', response_truncated: true },
    ...{ dns_ms: 1, connect_ms: 2, tls_ms: 3, first_byte_ms: 4, total_ms: 5, is_backdated: true },
  });
  expect(await openIds()).toEqual([]);
});

test('what it does not find open is for the other statements: new, claimed before, or both in one call', async () => {
  const [stored, claimed, unstored] = [await newOpenEvent(), await newOpenEvent(), newEvent()];
  await claim(rowsOf(claimed, false));
  const results = await claim(rowsOf(unstored, true), rowsOf(claimed, true), rowsOf(stored, true));
  expect(results).toEqual(['claimed', 'known', 'claimed']);
  for (const event of [stored, claimed, unstored]) expect(await storedOf(event)).toHaveLength(4);
  expect(await openIds()).toEqual([]);
});

test('of many that claim the same events at once one has each', async () => {
  const events = [await newOpenEvent(), await newOpenEvent(), await newOpenEvent()];
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, index) => {
      const rows = events.map((event) => rowsOf(event, index % 3 !== 0));
      return claim(...(index % 2 === 0 ? rows : rows.reverse())).then((some) =>
        index % 2 === 0 ? some : some.reverse(),
      );
    }),
  );
  for (const index of events.keys())
    expect(results.filter((some) => some[index] === 'claimed')).toHaveLength(1);
  for (const event of events) expect(await storedOf(event)).toHaveLength(4);
});

test('nothing is claimed while nobody knows what is open', async () => {
  const [open, claimed] = [await newOpenEvent(), await newOpenEvent()];
  await claim(rowsOf(claimed, true));
  await database.pool.query('TRUNCATE open_events, open_events_whole');
  expect(await claim(rowsOf(claimed, true), rowsOf(open, true))).toEqual(['known', 'claimed']);
  for (const event of [open, claimed]) expect(await storedOf(event)).toHaveLength(4);
});
