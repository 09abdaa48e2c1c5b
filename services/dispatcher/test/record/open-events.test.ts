import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import { type Database, openDatabase } from '@runhook/database';
import { migrate } from '@runhook/database/migrate';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { startPostgres } from '@runhook/embedded';
import {
  createTestDatabase,
  exampleEvent,
  IN_VAIN_MS,
  seedAccount,
  seedSubscription,
  type TestAccount,
  type TestDatabase,
} from '@runhook/testing';
import { commitFanOut, type FanOutRows } from '../../src/record/commit-fan-out.ts';
import { commitPage } from '../../src/record/commit-page.ts';
import { eventStates, keepOpenEvents, RESTORE, restoreOpenEvents } from '../../src/record/open-events.ts';
import { insertOpenEvent } from '../log-rows.ts';

/*
 * A crash of PostgreSQL empties `open_events` (docs/adr/0057-open-events-are-found-again.md). That it does, and that nothing is lost
 * or sent twice by it, is for the chaos ledger to show; this is what is found again, and what not.
 */

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let account: TestAccount;
let subscription: { id: string; name: string };
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, plansByIndex: true, connectTimeoutMs: IN_VAIN_MS });
  account = await seedAccount(database);
  subscription = await seedSubscription(database, {
    accountId: account.id,
    clientUrl: 'http://127.0.0.1:9',
  });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

let runs = 0;
function newEvent(): JobRunEvent {
  runs += 1;
  return exampleEvent('job.run.started', account.jobs[0] as never, runs);
}

async function newOpenEvent(): Promise<JobRunEvent> {
  const event = newEvent();
  await insertOpenEvent(database, event);
  return event;
}

/** Its fan-out to the subscription, or to nobody. */
function rowsOf(event: JobRunEvent, isMatched = true): FanOutRows {
  const { id: subscriptionId, name: webhookName } = subscription;
  const id = deliveryIdFor(event.eventId, subscriptionId);
  const delivery = { id, subscriptionId, webhookName, isParked: false };
  return { event, version: null, deliveries: isMatched ? [delivery] : [] };
}

const claim = async (...rows: FanOutRows[]) => await commitFanOut(database.pool, rows);

async function versionOfAccount(): Promise<string> {
  const { rows } = await database.pool.query('SELECT version FROM accounts WHERE id = $1', [account.id]);
  return rows[0].version;
}

async function firstPage(event: JobRunEvent): Promise<void> {
  await commitPage(database.pool, { ...rowsOf(event), version: await versionOfAccount() });
}

/** What a crash leaves of tables that are not in the log of PostgreSQL. */
async function crash(): Promise<void> {
  await database.pool.query('TRUNCATE open_events, open_events_whole');
}

async function openIds(): Promise<string[]> {
  const { rows } = await database.pool.query('SELECT event_id FROM open_events ORDER BY event_id');
  return rows.map(({ event_id }) => event_id);
}

/** As if all that is there had been committed so long ago. */
async function age(minutes: number): Promise<void> {
  const before = `now() - interval '${minutes} minutes'`;
  await database.pool.query(
    `UPDATE events SET created_at = ${before}; UPDATE open_events SET created_at = ${before};
     UPDATE open_events_checkpoint SET at = ${before} - interval '1 minute'`,
  );
}

async function startAnew(): Promise<void> {
  await database.pool.query('TRUNCATE events, deliveries, open_events');
}

test('what nobody had fanned out is open again after a crash, and nothing else', async () => {
  await startAnew();
  const open = [await newOpenEvent(), await newOpenEvent()];
  const [delivered, unmatched] = [await newOpenEvent(), await newOpenEvent()];
  const [published, publishedToNobody] = [newEvent(), newEvent()];
  expect(await claim(rowsOf(delivered), rowsOf(unmatched, false))).toEqual(['claimed', 'claimed']);
  expect(await claim(rowsOf(published), rowsOf(publishedToNobody, false))).toEqual(['claimed', 'claimed']);
  const [begun, begunByQueue] = [await newOpenEvent(), newEvent()];
  for (const event of [begun, begunByQueue]) await firstPage(event);
  const paged = await newOpenEvent();
  await firstPage(paged);
  expect(await claim({ ...rowsOf(paged, false), isPaged: true })).toEqual(['claimed']);
  const expected = [...open, begun, begunByQueue].map(({ eventId }) => eventId).sort();
  expect(await openIds()).toEqual(expected);

  await crash();
  // Committed since: it is there already.
  const later = await newOpenEvent();
  await restoreOpenEvents(database.pool);
  expect(await openIds()).toEqual([...expected, later.eventId].sort());
});

test('whoever claims after a crash finds out first what is open, and it is claimed once', async () => {
  await startAnew();
  const [open, delivered] = [await newOpenEvent(), await newOpenEvent()];
  await claim(rowsOf(delivered));
  await crash();
  const claims = await Promise.all(
    Array.from({ length: 8 }, () => claim(rowsOf(open), rowsOf(delivered), rowsOf(newEvent(), false))),
  );
  expect(claims.filter(([first]) => first === 'claimed')).toHaveLength(1);
  expect(claims.filter(([, second]) => second === 'claimed')).toHaveLength(0);
  expect(claims.filter(([, , third]) => third === 'claimed')).toHaveLength(8);
  expect(await openIds()).toEqual([]);
});

test('a look and a page find it out, too', async () => {
  await startAnew();
  const version = await versionOfAccount();
  const [open, delivered] = [await newOpenEvent(), await newOpenEvent()];
  await claim(rowsOf(delivered));
  await crash();
  const looked = [open, delivered].map((event) => ({ event, version }));
  expect(await eventStates(database.pool, looked)).toEqual(['open', 'known']);
  await crash();
  const page = await commitPage(database.pool, { ...rowsOf(open), version });
  expect(page?.size).toBe(1);
  await crash();
  const late = await commitPage(database.pool, { ...rowsOf(delivered), version });
  expect(late?.size).toBe(0);
});

test('what has been open for long is found again, though the checkpoint has passed it', async () => {
  await startAnew();
  const [open, toBeDelivered, begun] = [await newOpenEvent(), await newOpenEvent(), await newOpenEvent()];
  const delivered = await newOpenEvent();
  await claim(rowsOf(delivered));
  await firstPage(begun);
  await age(30);
  await keepOpenEvents(database.pool);
  const { rows } = await database.pool.query(
    `SELECT at > now() - interval '15 minutes' AS "isMoved" FROM open_events_checkpoint`,
  );
  expect(rows).toEqual([{ isMoved: true }]);
  const marks = await database.pool.query('SELECT id, unfinished FROM events ORDER BY id');
  const markOf = new Map(marks.rows.map(({ id, unfinished }) => [id, unfinished]));
  expect(markOf).toEqual(
    new Map([
      [open.eventId, 'late'],
      [toBeDelivered.eventId, 'late'],
      [begun.eventId, 'paged'],
      [delivered.eventId, null],
    ]),
  );
  await claim(rowsOf(toBeDelivered));
  await crash();
  await restoreOpenEvents(database.pool);
  expect(await openIds()).toEqual([open, begun].map(({ eventId }) => eventId).sort());
  // Claimed at last: nothing of it is left.
  await claim(rowsOf(open, false), { ...rowsOf(begun, false), isPaged: true });
  const left = await database.pool.query('SELECT FROM events WHERE unfinished IS NOT NULL');
  expect(left.rowCount).toBe(0);
});

test('of very many that are open for long some are marked at a time', async () => {
  await startAnew();
  for (let count = 0; count < 5; count += 1) await newOpenEvent();
  await age(30);
  await database.pool.query(
    `UPDATE open_events SET created_at = created_at + n * interval '1 second'
     FROM (SELECT event_id AS id, row_number() OVER () AS n FROM open_events) AS numbered WHERE id = event_id`,
  );
  const marked: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    await keepOpenEvents(database.pool, 2);
    const { rowCount } = await database.pool.query('SELECT FROM events WHERE unfinished IS NOT NULL');
    marked.push(rowCount ?? 0);
  }
  expect(marked).toEqual([2, 4, 5, 5]);
});

test('the checkpoint moves once a minute, after what is missing was found since where it was', async () => {
  await startAnew();
  const at = async () =>
    (await database.pool.query('SELECT at::text FROM open_events_checkpoint')).rows[0].at;
  const open = await newOpenEvent();
  await age(30);
  await crash();
  const before = await at();
  await keepOpenEvents(database.pool);
  expect(await openIds()).toEqual([open.eventId]);
  const moved = await at();
  expect(moved).not.toBe(before);
  await keepOpenEvents(database.pool);
  expect(await at()).toBe(moved);
});

test('events are looked for by their time, and their deliveries by their run', async () => {
  await startAnew();
  await database.pool.query(
    `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name)
     SELECT $1, 'wdl_' || n, $2, $3, 'wev_' || n, 'job.run.started', 1, n, 'x' FROM generate_series(1, 2000) AS n`,
    [idDay('event', newEvent().eventId), account.id, subscription.id],
  );
  // Nobody has counted them yet, as of a day that has just begun.
  await crash();
  await restoreOpenEvents(database.pool);
  const client = await database.pool.connect();
  try {
    await client.query(`PREPARE restore_open_events (timestamptz) AS ${RESTORE}`);
    const { rows } = await client.query('EXPLAIN EXECUTE restore_open_events (now())');
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(/Bitmap Index Scan on events_\d+_created_at_idx/);
    expect(plan).toMatch(/Index Scan using deliveries_\d+_run_id_idx/);
    expect(plan).not.toMatch(/Seq Scan/);
  } finally {
    client.release(true);
  }
});

test('a kill -9 of PostgreSQL empties both tables, and what was open is found again', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'runhook-crash-'));
  const open = newEvent();
  const whileItRuns = async (work: (database: Database) => Promise<void>) => {
    const server = await startPostgres({ dataDir });
    try {
      await migrate(server.url);
      const there = openDatabase({ url: server.url, connectTimeoutMs: IN_VAIN_MS });
      await work(there);
      await there.close();
    } finally {
      await server.kill();
    }
  };
  const stored = async ({ pool }: Database) => {
    const text = `SELECT (SELECT count(*)::int FROM events) AS events, (SELECT count(*)::int FROM open_events) AS open,
                         (SELECT count(*)::int FROM open_events_whole) AS whole`;
    return (await pool.query(text)).rows[0];
  };
  try {
    await whileItRuns(async (there) => {
      await insertOpenEvent(there, open);
      expect(await stored(there)).toEqual({ events: 1, open: 1, whole: 1 });
    });
    await whileItRuns(async (there) => {
      expect(await stored(there)).toEqual({ events: 1, open: 0, whole: 0 });
      expect(await commitFanOut(there.pool, [rowsOf(open)])).toEqual(['claimed']);
      expect(await stored(there)).toEqual({ events: 1, open: 0, whole: 1 });
    });
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});
