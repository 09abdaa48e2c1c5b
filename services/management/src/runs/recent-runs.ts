// SQL by hand: DISTINCT ON returns the latest run of each job, from a bounded number of runs.
import { type Queryable, queryRows } from '@runhook/database';
import { RUNS_SEARCHED_MAX } from './list-runs.ts';
import type { RunView } from './run-view.ts';
import { RUN, RUN_COLUMNS, toRunView } from './statements.ts';

/**
 * Returns the latest run of each job, of any status or of those that have ended. Reads the newest
 * {@link RUNS_SEARCHED_MAX} runs of the account, because no index has the job of a run.
 */
export async function findRecentRuns(
  database: Queryable,
  accountId: number,
  jobIds: readonly number[],
  { isCompleted }: { isCompleted: boolean },
): Promise<RunView[]> {
  if (jobIds.length === 0) return [];
  const text = `
    SELECT DISTINCT ON (runs.job_id) ${RUN_COLUMNS}
    FROM (
      SELECT * FROM runs WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT ${RUNS_SEARCHED_MAX}
    ) AS runs
    WHERE runs.job_id = ANY ($2::bigint[])
      ${isCompleted ? `AND runs.status IN ('Success', 'Errored', 'Canceled')` : ''}
    ORDER BY runs.job_id, runs.created_at DESC, runs.id DESC`;
  const rows = await queryRows(database, RUN, text, [accountId, jobIds]);
  return rows.map(toRunView);
}
