import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { renewFeedGeneration } from '@runhook/database/migrate';
import { createTestDatabase, seedAccount, WAIT_TIMEOUT_MS } from '@runhook/testing';

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>;
let database: ReturnType<typeof openDatabase>;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

async function query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
  return (await database.pool.query<Row & { [column: string]: unknown }>(text, values)).rows;
}

const INSERT = `
  INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
  VALUES (current_date - $3::int, $2, $1, 'job.run.errored', '', '{}') RETURNING position`;

test('on another server, positions continue above those of the restored dump, in every partition', async () => {
  const { id: accountId } = await seedAccount(database);
  const insert = async (id: string, daysAgo = 0) =>
    BigInt((await query<{ position: string }>(INSERT, [accountId, id, daysAgo]))[0]?.position ?? 0);
  expect(await renewFeedGeneration(testDatabase.url)).toBe(false);
  const first = await insert('1');
  expect(await insert('2')).toBeGreaterThan(first);

  // As after a restore from a server that had many more transactions.
  const restored = first + 1_000_000n;
  await query('UPDATE events SET position = $1 WHERE id = $2', [String(restored), '2']);
  await query(`UPDATE feed_generations SET system_identifier = 'other', marked_position = $1`, [
    String(first),
  ]);
  expect(await renewFeedGeneration(testDatabase.url)).toBe(true);
  expect(await renewFeedGeneration(testDatabase.url)).toBe(false);
  const positions = [await insert('3'), await insert('4', 1), await insert('5', 400)];
  expect(positions.every((position) => position > restored)).toBe(true);
  expect(await query('SELECT first_position FROM feed_generations ORDER BY number DESC LIMIT 1')).toEqual([
    { first_position: String(first) },
  ]);
});
