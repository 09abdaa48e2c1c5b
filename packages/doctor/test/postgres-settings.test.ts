import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { addQuarantined, openDatabase } from '@runhook/database';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';
import { examinePostgresSettings } from '../src/postgres-settings.ts';

let testDatabase: TestDatabase;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
});
afterEach(() => testDatabase.drop());

/** Uses a new session, because settings of a database only affect new sessions. */
async function examine(nowMs?: () => number) {
  const { pool, close } = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  try {
    const found = [];
    for await (const finding of examinePostgresSettings(pool, nowMs)) found.push(finding);
    return Object.fromEntries(found.map(({ check, ...finding }) => [check, finding]));
  } finally {
    await close();
  }
}

async function query(text: string): Promise<void> {
  const { pool, close } = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  await pool.query(text).finally(close);
}

const set = (setting: string) =>
  query(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ${setting}', current_database()); END $$`);

test('a database with the recommended settings has only ok findings', async () => {
  await set('jit = off');
  const found = await examine(() => 0);
  for (const { status } of Object.values(found)) expect(status).toBe('ok');
});

test('a read-only database fails, with the statement that makes it writable', async () => {
  await set('default_transaction_read_only = on');
  const { writes, commit } = await examine();
  expect(writes).toMatchObject({
    status: 'failed',
    remedy: expect.stringContaining('RESET default_transaction_read_only'),
  });
  expect(commit).toMatchObject({ status: 'skipped' });
});

test('JIT of new sessions is reported, even though the sessions of the services disable it', async () => {
  await set('jit = on');
  expect((await examine()).jit).toMatchObject({
    status: 'warning',
    remedy: expect.stringMatching(/^ALTER ROLE .* IN DATABASE .* SET jit = off;$/),
  });
});

test('a large day table without statistics is named, and an analysed one is not', async () => {
  await query('ALTER TABLE attempts SET (autovacuum_enabled = false)').catch(() => undefined);
  await query(
    `INSERT INTO attempts (day, account_id, delivery_id, number, trigger, started_at, duration_ms, http_status_code, request_headers, response_truncated, response_body)
     SELECT current_date, 1, 'wdl_' || n, 1, 'automatic', now(), 1, 200, '{}', false, repeat(md5(n::text), 50)
     FROM generate_series(1, 10000) AS n`,
  );
  expect((await examine()).statistics).toMatchObject({
    status: 'warning',
    remedy: expect.stringMatching(/^ANALYZE attempts/),
  });
  await query('ANALYZE attempts');
  expect((await examine()).statistics).toMatchObject({ status: 'ok' });
});

test('a slow commit is measured without the round trip, and reported with the setting to change', async () => {
  // The clock advances by 30 ms per call, so a round trip takes as long as a commit.
  let readings = 0;
  expect((await examine(() => 30 * readings++)).commit).toMatchObject({ status: 'ok' });
  // Each call after the tenth, i.e. after five round trips, advances the clock by 100 ms.
  let ms = 0;
  readings = 0;
  const slow = () => {
    ms += readings++ < 10 ? 10 : 100;
    return ms;
  };
  expect((await examine(slow)).commit).toMatchObject({
    status: 'warning',
    message: expect.stringContaining('90.0 ms'),
    remedy: expect.stringContaining('commit_delay'),
  });
});

test('quarantined items are counted, with the reason of the newest', async () => {
  const { pool, close } = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  const item = { kind: 'event', accountId: 1, reason: 'a reason' } as const;
  await addQuarantined(pool, [
    { ...item, key: 'one' },
    { ...item, key: 'two' },
  ]).finally(close);
  expect((await examine()).quarantine).toMatchObject({
    status: 'warning',
    message: expect.stringMatching(/^2 items .*a reason$/),
  });
});
