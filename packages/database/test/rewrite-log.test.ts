import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, idDay } from '@runhook/contract';
import { type Database, openDatabase, type Pool, requireSchema, type Statement } from '@runhook/database';
import { rewriteLog } from '@runhook/database/migrate';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url });
  await sql(`COMMENT ON TABLE events IS 'rewrite pending'`);
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

const sql = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows;

/** Inserts a row of `events` in the format of releases before 0.2.0, undispatched; `data` is JSON text. */
async function insertOld(data: string, eventType = 'job.run.errored'): Promise<string> {
  const id = createId('event');
  await sql(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data) VALUES ($1, $2, 1, $3, '1795428672.345', $4)`,
    [idDay('event', id), id, eventType, data],
  );
  await sql('INSERT INTO undispatched_events (account_id, day, event_id) VALUES (1, $1, $2)', [
    idDay('event', id),
    id,
  ]);
  return id;
}

const OLD_DATA = (message: string) =>
  `["12","Nightly build",42,4,"Production","1.9.2","Analytics",3,20,0,"${message}","Scheduled",1795428600,1795428672]`;
const eventOf = async (id: string) => (await sql('SELECT * FROM events WHERE id = $1', [id]))[0];

test('rewriteLog() rewrites the data of an event with its names, repairs its text, and fills the run', async () => {
  const id = await insertOld(OLD_DATA('cut \\ud83d, NUL \\u0000'));
  const [result] = await rewriteLog(database.pool);
  expect(result).toMatchObject({ rewritten: 1, setAside: 0 });
  expect(await eventOf(id)).toMatchObject({
    run_id: '42',
    timestamp: '2026-11-23T10:11:12.345000000Z',
    data: {
      jobId: '12',
      jobName: 'Nightly build',
      runId: '42',
      environmentId: '4',
      projectId: '3',
      runStatus: 'Errored',
      runStatusCode: 20,
      runStatusMessage: 'cut \uFFFD, NUL \uFFFD',
      runStartedAt: '2026-11-23T10:10:00Z',
      runErroredAt: '2026-11-23T10:11:12Z',
    },
  });
});

test('rewriteLog() sets aside an event that cannot be read, and rewrites the others', async () => {
  const [unreadable, readable] = [await insertOld('"no event"'), await insertOld(OLD_DATA('None'))];
  expect(await rewriteLog(database.pool)).toMatchObject([{ rewritten: 1, setAside: 1 }]);
  expect(await sql('SELECT kind, key FROM quarantined_items')).toEqual([{ kind: 'event', key: unreadable }]);
  expect(await sql('SELECT event_id FROM undispatched_events')).toEqual([{ event_id: readable }]);
  expect(await eventOf(unreadable)).toMatchObject({ run_id: '0', data: 'no event' });
});

test('rewriteLog() rewrites more rows than a batch has, and continues where an interrupted call ended', async () => {
  const ids = Array.from({ length: 1_002 }, () => createId('event'));
  await sql(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
     SELECT current_date, id, 1, 'job.run.errored', '1795428672', $2::json FROM unnest($1::text[]) AS id`,
    [ids, OLD_DATA('None')],
  );
  await sql('UPDATE events SET run_id = 42 WHERE id = $1', [ids[500]]);
  expect(await rewriteLog(database.pool)).toMatchObject([{ rewritten: 1_001, setAside: 0 }]);
  expect(await sql('SELECT FROM events WHERE run_id IS NULL')).toEqual([]);
});

test('rewriteLog() reads and writes at most 20 MB of long events at a time', async () => {
  const ids = Array.from({ length: 60 }, () => createId('event'));
  await sql(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
     SELECT current_date, id, 1, 'job.run.errored', '1795428672', $2::json FROM unnest($1::text[]) AS id`,
    [ids, OLD_DATA('a'.repeat(1_000_000))],
  );
  const bytes: number[] = [];
  const pool = {
    async query(statement: Statement) {
      const result = await database.pool.query(statement);
      bytes.push(JSON.stringify(statement.values).length, JSON.stringify(result.rows).length);
      return result;
    },
  } as unknown as Pool;
  expect(await rewriteLog(pool)).toMatchObject([{ rewritten: 60, setAside: 0 }]);
  expect(Math.max(...bytes)).toBeLessThan(20_000_000);
});

test('rewriteLog() rewrites the request and response headers of deliveries and of attempts', async () => {
  const eventId = await insertOld(OLD_DATA('None'));
  const day = idDay('event', eventId);
  const [one, other] = [deliveryIdFor(eventId, 'wsu_1'), deliveryIdFor(eventId, 'wsu_2')];
  const exchange = [`"Runhook/0.1.0"`, `[0,"2",5,-1,"x-own","value",36,"https://a.example/"]`];
  await sql(
    `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                             started_at, request_headers, response_headers)
     VALUES ($1, $2, 1, 'wsu_1', $4, 'job.run.errored', 12, 42, 'x', '2026-11-23T10:11:12.7Z', $5, $6),
            ($1, $3, 1, 'wsu_2', $4, 'job.run.errored', 12, 42, 'x', NULL, NULL, NULL)`,
    [day, one, other, eventId, ...exchange],
  );
  await sql(
    `INSERT INTO attempts (day, delivery_id, account_id, number, trigger, started_at, duration_ms, http_status_code,
                           request_headers, response_headers, response_truncated)
     VALUES ($1, $2, 1, 1, 'automatic', '2026-11-23T10:11:12.7Z', 5, 500, $3, $4, false)`,
    [day, other, ...exchange],
  );
  await rewriteLog(database.pool);
  const headers = {
    request_headers: {
      'content-type': 'application/json',
      'user-agent': 'Runhook/0.1.0',
      authorization: '***',
      'webhook-id': eventId,
      'webhook-timestamp': '1795428672',
      'webhook-signature': '***',
    },
    response_headers: {
      date: 'Mon, 23 Nov 2026 10:11:14 GMT',
      'content-type': 'application/json',
      'x-own': 'value',
      pragma: 'https://a.example/',
    },
  };
  expect(await sql('SELECT * FROM deliveries WHERE id = $1', [one])).toMatchObject([headers]);
  expect(await sql('SELECT * FROM attempts')).toMatchObject([headers]);
});

test('rewriteLog() removes headers that cannot be read, and reports the first of their rows', async () => {
  const eventId = createId('event');
  const ids = ['wsu_1', 'wsu_2'].map((subscriptionId) => deliveryIdFor(eventId, subscriptionId));
  await sql(
    `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name, status,
                             started_at, request_headers, response_headers)
     SELECT $1, id, 1, 'wsu', $3, 'job.run.errored', 12, 42, 'x', 'delivered', started_at, '"Runhook/0.1.0"', '[5]'
     FROM unnest($2::text[], '{infinity,now}'::timestamptz[]) AS d (id, started_at)`,
    [idDay('event', eventId), ids, eventId],
  );
  const [result] = await rewriteLog(database.pool);
  expect(result).toMatchObject({ rewritten: 1, setAside: 0, withoutHeaders: 1 });
  expect(result?.reason).toMatch(new RegExp(`^${ids[0]} of deliveries_\\d{8} could not be rewritten: .`));
  expect(await sql('SELECT * FROM quarantined_items')).toEqual([]);
  expect(await sql('SELECT * FROM deliveries WHERE id = $1', [ids[0]])).toMatchObject([
    { status: 'delivered', started_at: Infinity, request_headers: {}, response_headers: {} },
  ]);
});

test('services do not start before the rewrite has ended', async () => {
  await expect(requireSchema(database.pool)).rejects.toThrow('The rewrite of the log is not finished');
  await rewriteLog(database.pool);
  await requireSchema(database.pool);
});
