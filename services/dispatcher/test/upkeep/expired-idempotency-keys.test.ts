import { expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { createTestDatabase } from '@runhook/testing';
import { deleteExpiredIdempotencyKeys } from '../../src/upkeep/tasks.ts';

test('idempotency keys are swept away when their day is over, and not before', async () => {
  const testDatabase = await createTestDatabase();
  const database = openDatabase({ url: testDatabase.url });
  try {
    await database.pool.query(
      `INSERT INTO idempotency_keys (id, body_hash, claim, claimed_until, expires_at)
       VALUES ('over', '', 'x', now(), now()), ('not yet', '', 'x', now(), now() + interval '1 minute')`,
    );
    await deleteExpiredIdempotencyKeys(database.pool);
    const { rows } = await database.pool.query('SELECT id FROM idempotency_keys');
    expect(rows).toEqual([{ id: 'not yet' }]);
  } finally {
    await database.close();
    await testDatabase.drop();
  }
});
