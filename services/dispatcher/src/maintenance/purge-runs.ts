import {
  type BatchOptions,
  deleteRunSteps,
  type Queryable,
  runInPages,
  runStatement,
} from '@runhook/database';

/**
 * Deletes runs whose retention is over with their steps, in batches. The steps are deleted first, so that a pass that
 * fails leaves none without a run.
 * @returns the number of deleted runs
 */
export async function purgeRuns(
  database: Queryable,
  runRetentionDays: number,
  options: BatchOptions,
): Promise<number> {
  return await runInPages(options, async (batchSize) => {
    const rows = await runStatement<{ account_id: string; id: string }>(
      database,
      OLD_RUNS.text,
      [runRetentionDays, batchSize],
      OLD_RUNS.name,
    );
    if (rows.length === 0) return 0;
    const runs = rows.map((row) => ({ accountId: row.account_id, runId: row.id }));
    await deleteRunSteps(database, runs);
    const keys = [runs.map(({ accountId }) => accountId), runs.map(({ runId }) => runId)];
    await runStatement(database, DELETE_RUNS.text, keys, DELETE_RUNS.name);
    return rows.length;
  });
}

// Finds runs by account, whose index is needed anyway: an index by time alone would be written for each run.
const OLD_RUNS = {
  name: 'old-runs',
  text: `
    SELECT old.account_id, old.id
    FROM accounts a CROSS JOIN LATERAL (
      SELECT r.account_id, r.id FROM runs r
      WHERE r.account_id = a.id AND r.created_at < now() - $1::int * interval '1 day'
      ORDER BY r.created_at LIMIT $2) old
    LIMIT $2`,
};

// Takes no row lock: runs of this age are not reported.
const DELETE_RUNS = {
  name: 'delete-old-runs',
  text: `
    DELETE FROM runs r USING unnest($1::bigint[], $2::bigint[]) AS old (account_id, id)
    WHERE r.account_id = old.account_id AND r.id = old.id`,
};
