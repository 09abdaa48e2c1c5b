import { expect, test } from '@jest/globals';
import { openDatabase, readLockCapacity } from '@runhook/database';
import { createTestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';

test('a statement over all days takes the computed number of locks, and 365 days need a higher max_locks_per_transaction', async () => {
  const testDatabase = await createTestDatabase();
  const database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  try {
    const { pool } = database;
    const days = 20;
    await pool.query('SELECT ensure_day_partitions(current_date - $1::int, current_date + 7)', [days]);
    const client = await pool.connect();
    await client.query('BEGIN');
    await client.query(`UPDATE deliveries SET attempt_count = 1 WHERE id = 'any'`);
    const { rows } = await client.query(
      `SELECT count(*)::int AS locks FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
       WHERE pid = pg_backend_pid() AND c.relname LIKE 'deliveries%'`,
    );
    client.release(true);
    const { locksPerStatement, setting, settingNeeded } = await readLockCapacity(pool, days);
    // Older servers omit the indexes of the partitioned table.
    expect([locksPerStatement, locksPerStatement - 8]).toContain(rows[0].locks);
    expect(settingNeeded).toBeLessThanOrEqual(setting);

    const year = await readLockCapacity(pool, 365);
    // Eleven locks for each of 375 days.
    expect(year.locksPerStatement).toBe(4_125);
    expect(year.statementsMax).toBeLessThan(20);
    expect(year.settingNeeded).toBeGreaterThan(year.setting);
  } finally {
    await database.close();
    await testDatabase.drop();
  }
});
