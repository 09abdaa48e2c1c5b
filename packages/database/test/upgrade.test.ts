import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, idDay } from '@runhook/contract';
import { type Database, openDatabase, requireSchema } from '@runhook/database';
import { migrate, rewriteLog } from '@runhook/database/migrate';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';

const MIGRATIONS = join(import.meta.dirname, '../../../prisma/migrations');
/** The first migration of 0.2.0. */
const FIRST_NEW = '20261126';

let testDatabase: TestDatabase;
let database: Database;
let folder: string;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url });
  await sql('DROP SCHEMA public CASCADE');
  await sql('CREATE SCHEMA public');
  folder = await mkdtemp(join(tmpdir(), 'migrations-'));
  for (const name of await readdir(MIGRATIONS)) {
    if (/^\d/.test(name) && name >= FIRST_NEW) continue;
    await cp(join(MIGRATIONS, name), join(folder, name), { recursive: true });
  }
  await migrate(testDatabase.url, { directory: folder });
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
  await rm(folder, { recursive: true });
});

const sql = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows;

const DATA = (message: string) =>
  `["12","Nightly build",42,4,"Production","1.9.2","Analytics",3,20,0,"${message}","Scheduled",1795428600,1795428672]`;

interface OldRow {
  message?: string;
  unmatched?: boolean;
  dispatchState?: string;
  hasDelivery?: boolean;
  isOpen?: boolean;
}

/** Inserts an event as releases before 0.2.0 wrote it. */
async function insertOld({
  message = 'None',
  unmatched,
  dispatchState,
  hasDelivery,
  isOpen,
}: OldRow): Promise<string> {
  const id = createId('event');
  const day = idDay('event', id);
  await sql(
    `INSERT INTO events (day, id, account_id, event_type, "timestamp", data, unmatched, unfinished)
     VALUES ($1, $2, 1, 'job.run.errored', '1795428672.345', $3, $4, $5)`,
    [day, id, DATA(message), unmatched, dispatchState],
  );
  if (isOpen) await sql('INSERT INTO open_events (day, event_id, account_id) VALUES ($1, $2, 1)', [day, id]);
  if (hasDelivery)
    await sql(
      `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                               started_at, request_headers, response_headers)
       VALUES ($1, $2, 1, 'wsu_1', $3, 'job.run.errored', 12, 42, 'x', now(), '"Runhook/0.1.0"', '[5]')`,
      [day, deliveryIdFor(id, 'wsu_1'), id],
    );
  return id;
}

const undispatched = async () =>
  (await sql('SELECT event_id FROM undispatched_events')).map((row) => row.event_id).sort();

test('undispatched events and the log of a release before 0.2.0 are migrated', async () => {
  const dispatched = await insertOld({ hasDelivery: true, message: 'cut \\ud83d' });
  const open = await insertOld({ isOpen: true });
  await migrate(testDatabase.url);
  expect(await undispatched()).toEqual([open]);
  await expect(requireSchema(database.pool)).rejects.toThrow('The rewrite of the log is not finished');
  expect(await rewriteLog(database.pool)).toMatchObject([
    { rewritten: 2, setAside: 0 },
    { rewritten: 1, setAside: 0 },
  ]);
  await requireSchema(database.pool);
  expect(await sql('SELECT data, run_id FROM events WHERE id = $1', [dispatched])).toMatchObject([
    { data: { jobName: 'Nightly build', runStatusMessage: 'cut \uFFFD' }, run_id: '42' },
  ]);
});

test('undispatched events are found although a crash has emptied their table', async () => {
  const open = await insertOld({});
  const paged = await insertOld({ dispatchState: 'paged', hasDelivery: true });
  const late = await insertOld({ dispatchState: 'late' });
  await insertOld({ hasDelivery: true });
  await insertOld({ unmatched: true });
  await sql('DELETE FROM open_events_whole');
  // The clock was ahead when the checkpoint was written.
  await sql(`UPDATE open_events_checkpoint SET at = now() + interval '2 hours'`);
  await migrate(testDatabase.url);
  expect(await undispatched()).toEqual([open, paged, late].sort());
});
