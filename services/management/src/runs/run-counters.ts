// SQL by hand: one statement advances the run counters of many accounts, each beyond the run ids that runners supply.
import { column, type Pool, queryRows } from '@runhook/database';

/** Largest client-supplied run id that an account's counter follows: as many ids remain above it. */
export const FOLLOWED_RUN_ID_MAX = 2 ** 52;

/** Number of run ids that an account needs. */
export interface RunIdDraw {
  accountId: number;
  count: number;
  /** Run id that the drawn ones must exceed; 0 for none. */
  above: number;
}

/** Largest id of the account's runs that its counter follows; 0 without any. */
const followedSql = (accountId: string) => `coalesce((
  SELECT max(runs.id) FROM runs WHERE runs.account_id = ${accountId} AND runs.id <= ${FOLLOWED_RUN_ID_MAX}), 0)`;

// Without `synchronous_commit` the statement does not wait for the disk. The run with a drawn id is committed later in
// the same log, so a crash that loses the advance also loses the run, before its id was in a response.
// Sorted, so that two processes lock the counters in the same order and cannot deadlock.
const DRAW = `
  WITH drawn AS MATERIALIZED (
    SELECT input.account_id, input.count, greatest(input.above, ${followedSql('input.account_id')}) AS last_id
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS input (account_id, count, above)
  )
  INSERT INTO run_counters AS counter (account_id, last_run_id)
  SELECT drawn.account_id, drawn.last_id + drawn.count
  FROM drawn, (SELECT set_config('synchronous_commit', 'off', true)) AS transaction_setting
  ORDER BY drawn.account_id
  ON CONFLICT (account_id) DO UPDATE SET last_run_id = greatest(EXCLUDED.last_run_id, counter.last_run_id
    + (SELECT drawn.count FROM drawn WHERE drawn.account_id = EXCLUDED.account_id))
  RETURNING account_id, last_run_id`;

const COUNTER = { account_id: column.digits, last_run_id: column.digits };

/**
 * Draws consecutive run ids and returns the last one for each account. They exceed all that the account has drawn or
 * has stored up to {@link FOLLOWED_RUN_ID_MAX}. Accounts must not repeat. Must not run in a transaction, which would
 * keep the counters locked.
 */
export async function drawRunIds(pool: Pool, draws: readonly RunIdDraw[]): Promise<Map<number, number>> {
  const values = [
    draws.map(({ accountId }) => accountId),
    draws.map(({ count }) => count),
    draws.map(({ above }) => above),
  ];
  const rows = await queryRows(pool, COUNTER, DRAW, values);
  return new Map(rows.map((row) => [Number(row.account_id), Number(row.last_run_id)]));
}

const SEARCHED_MAX = 100_000;
const DRAW_FREE = `
  UPDATE run_counters AS counter SET last_run_id = coalesce((
    SELECT next.id FROM generate_series(
      greatest(counter.last_run_id, ${followedSql('counter.account_id')}) + 1, counter.last_run_id + ${SEARCHED_MAX}) AS next (id)
    WHERE NOT EXISTS (SELECT FROM runs WHERE runs.account_id = counter.account_id AND runs.id = next.id)
    LIMIT 1), counter.last_run_id + ${SEARCHED_MAX})
  WHERE account_id = $1
  RETURNING last_run_id`;

/**
 * Draws another id for an account whose drawn id was taken meanwhile. Beyond {@link FOLLOWED_RUN_ID_MAX} runners may
 * have supplied a long range of the next ids. The returned id may be taken as well, after a range of 100,000.
 */
export async function drawFreeRunId(pool: Pool, accountId: number): Promise<number> {
  const [row] = await queryRows(pool, { last_run_id: column.digits }, DRAW_FREE, [accountId]);
  if (row === undefined) throw new Error(`account ${accountId} has lost its run counter`);
  return Number(row.last_run_id);
}
