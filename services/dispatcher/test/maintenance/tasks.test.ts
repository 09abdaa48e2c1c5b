import { expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { createTestDatabase } from '@runhook/testing';
import { maintenanceTasks } from '../../src/maintenance/tasks.ts';

test('the partitions task drops old days even if it cannot create new ones, and fails afterwards', async () => {
  const testDatabase = await createTestDatabase({ hasDayPartitions: false });
  const { pool, close } = openDatabase({ url: testDatabase.url });
  try {
    for (const table of ['events', 'deliveries', 'attempts'])
      await pool.query('SELECT make_day_partition($1, current_date - 50)', [table]);
    await pool.query('ALTER FUNCTION make_day_partition(text, date) RENAME TO make_no_partition');
    const dependencies = {
      pool,
      logRetentionDays: 30,
      metrics: { dayPartitionsDeferred: { inc: () => undefined } },
      logger: { info: () => undefined, warn: () => undefined },
    };
    const tasks = maintenanceTasks(dependencies as never);
    const run = tasks.find(({ name }) => name === 'partitions')?.run();
    await expect(run).rejects.toMatchObject({ message: 'Failed: make.' });
    const days = `SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'events'::regclass`;
    expect((await pool.query(days)).rows).toEqual([{ count: 1 }]);
  } finally {
    await close();
    await testDatabase.drop();
  }
});
