import { type Pool, runStatement } from '@runhook/database';

export interface PendingLimitOptions {
  pool: Pool;
  /** Number of deferred deliveries of an account beyond which lanes become full. */
  pendingMax: number;
  /** Ends a pass after the current account. */
  stopping?: AbortSignal;
  /** Maximum cost of a pass; {@link COST_MAX} when omitted. */
  costMax?: number;
}

export interface PendingLimitPassResult {
  accounts: number;
  /** Number of lanes that became full. */
  filled: number;
  /** Number of lanes that are no longer full. */
  reopened: number;
}

/**
 * Cost at which a pass ends: its counted deliveries, and {@link ACCOUNT_COST} for each account. The next pass continues
 * with the next account.
 */
const COST_MAX = 500_000;
/** Cost of an account in addition to its counted deliveries. */
const ACCOUNT_COST = 1_000;
/** A pass ends after this number of accounts that could not be checked, because the database may be unavailable. */
const ERRORS_MAX = 3;
const PAGE_SIZE = 100;
/** Cursor before the first account. */
const BEGINNING = '0';

/**
 * Limits the deferred deliveries of an account. Counting at each fan-out would cost too much, so an account is counted
 * periodically: beyond the limit, the lanes that have at least an equal share of it are marked as full on their
 * subscriptions, which changes the version of the account, so that every dispatcher reads it at its next commit. The
 * other lanes continue until they have their share: one dead endpoint does not affect the rest of its account, and all
 * lanes together have at most twice the limit, plus the deliveries that arrive between two counts. Only deferred
 * deliveries are counted: retries in the queue are few, since a failing lane is probed.
 *
 * The account at which a pass ends is stored in PostgreSQL: the next pass may be made by another process.
 * @throws AggregateError when accounts could not be checked, once the pass has ended; the next pass continues after
 * them
 */
export async function limitPending(options: PendingLimitOptions): Promise<PendingLimitPassResult> {
  const { pool, pendingMax, stopping, costMax = COST_MAX } = options;
  const result: PendingLimitPassResult = { accounts: 0, filled: 0, reopened: 0 };
  const errors: unknown[] = [];
  let after = await readCursor(pool);
  let cost = 0;
  while (true) {
    const page = await accountsWithDeferred(pool, after, PAGE_SIZE);
    for (const accountId of page) {
      after = accountId;
      cost += ACCOUNT_COST;
      try {
        const { deferred, filled, reopened } = await updateFullLanes(pool, accountId, pendingMax);
        result.accounts += 1;
        result.filled += filled;
        result.reopened += reopened;
        cost += deferred;
      } catch (error) {
        errors.push(error);
      }
      if (cost >= costMax || errors.length >= ERRORS_MAX || stopping?.aborted) {
        await runStatement(pool, STORE_CURSOR, [after], 'store-pending-limit-cursor');
        return throwIfFailed(result, errors);
      }
    }
    if (page.length < PAGE_SIZE) break;
  }
  await runStatement(pool, CLEAR_CURSOR, [], 'clear-pending-limit-cursor');
  return throwIfFailed(result, errors);
}

function throwIfFailed(result: PendingLimitPassResult, errors: readonly unknown[]): PendingLimitPassResult {
  if (errors.length > 0)
    throw new AggregateError(errors, `The lanes of ${errors.length} accounts could not be checked.`);
  return result;
}

const READ_CURSOR = `SELECT after_id AS after FROM reconciler_cursors WHERE source = 'pending_limit'`;
const STORE_CURSOR = `
  INSERT INTO reconciler_cursors (source, after_timestamp, after_id) VALUES ('pending_limit', now(), $1)
  ON CONFLICT (source) DO UPDATE SET after_timestamp = EXCLUDED.after_timestamp, after_id = EXCLUDED.after_id`;
const CLEAR_CURSOR = `DELETE FROM reconciler_cursors WHERE source = 'pending_limit'`;

/** Returns the id of the account at which the last pass ended, if it did not check all accounts. */
async function readCursor(pool: Pool): Promise<string> {
  const [row] = await runStatement<{ after: string }>(pool, READ_CURSOR, [], 'read-pending-limit-cursor');
  return row?.after ?? BEGINNING;
}

// Skips from one account to the next by the index, however many deliveries each has deferred.
const ACCOUNTS_WITH_DEFERRED = `
  WITH waiting AS (
    SELECT id FROM accounts_with_deferred($1::bigint, $2) AS account (id)
  ), full_ones AS (
    SELECT DISTINCT account_id AS id FROM subscriptions
    WHERE lane_full_since IS NOT NULL AND account_id > $1::bigint
    ORDER BY account_id LIMIT $2
  )
  SELECT id FROM (SELECT id FROM waiting UNION SELECT id FROM full_ones) AS accounts ORDER BY id LIMIT $2`;

/** Returns accounts with deferred deliveries or full lanes in the order of their ids, after the id `after`. */
async function accountsWithDeferred(pool: Pool, after: string, limit: number): Promise<string[]> {
  const rows = await runStatement<{ id: string }>(
    pool,
    ACCOUNTS_WITH_DEFERRED,
    [after, limit],
    'accounts-with-deferred',
  );
  return rows.map(({ id }) => id);
}

// Counts up to twice the limit only: an account beyond that, as after the limit was lowered, has all of its lanes full.
const COUNT_DEFERRED = `
  SELECT subscription_id AS "subscriptionId", count(*)::int AS deferred
  FROM (SELECT subscription_id FROM deliveries
        WHERE account_id = $1 AND deferred_at IS NOT NULL LIMIT 2 * $2::bigint + 1) AS counted
  GROUP BY subscription_id`;

// A full lane stays full down to nine tenths, so that its state does not change with each delivery. Rows are locked in
// the order that other statements use, too. This is a separate statement from the count, because in a log that is
// distributed over servers, deliveries are on other servers than subscriptions.
const UPDATE_FULL_LANES = `
  WITH lane AS MATERIALIZED (
    SELECT * FROM unnest($3::text[], $4::int[]) AS lane (subscription_id, deferred)
  ), account AS MATERIALIZED (
    SELECT coalesce(sum(deferred), 0) AS deferred, $2::numeric / greatest(count(*), 1) AS share,
      EXISTS (SELECT FROM subscriptions WHERE account_id = $1 AND lane_full_since IS NOT NULL) AS was_over
    FROM lane
  ), judged AS MATERIALIZED (
    SELECT s.id, s.lane_full_since IS NOT NULL AS was_full,
      CASE
        WHEN a.deferred > 2 * $2::bigint THEN true
        WHEN a.deferred > $2::bigint OR (a.was_over AND a.deferred >= 0.9 * $2::bigint) THEN
          coalesce(lane.deferred, 0) >= a.share * CASE WHEN s.lane_full_since IS NULL THEN 1 ELSE 0.9 END
        ELSE false
      END AS is_full
    FROM account a JOIN subscriptions s ON s.account_id = $1 LEFT JOIN lane ON lane.subscription_id = s.id
  ), locked AS MATERIALIZED (
    SELECT s.id, j.is_full, CASE WHEN j.is_full THEN now() END AS full_since FROM judged j JOIN subscriptions s ON s.id = j.id
    WHERE j.is_full <> j.was_full
    ORDER BY s.id FOR NO KEY UPDATE OF s
  ), changed AS (
    UPDATE subscriptions s SET lane_full_since = l.full_since
    FROM locked l WHERE s.id = l.id
    RETURNING l.is_full
  )
  SELECT (SELECT deferred::int FROM account) AS deferred,
    count(*) FILTER (WHERE is_full)::int AS filled, count(*) FILTER (WHERE NOT is_full)::int AS reopened
  FROM changed`;

interface FullLanesChange {
  [column: string]: unknown;
  /** Deferred deliveries of the account; the count ends just above twice the limit. */
  deferred: number;
  filled: number;
  reopened: number;
}

/** Determines and stores for each lane of an account whether it is full. */
async function updateFullLanes(pool: Pool, accountId: string, pendingMax: number): Promise<FullLanesChange> {
  const lanes = await runStatement<{ subscriptionId: string; deferred: number }>(
    pool,
    COUNT_DEFERRED,
    [accountId, pendingMax],
    'count-deferred',
  );
  const counted = [lanes.map(({ subscriptionId }) => subscriptionId), lanes.map(({ deferred }) => deferred)];
  const [row] = await runStatement<FullLanesChange>(
    pool,
    UPDATE_FULL_LANES,
    [accountId, pendingMax, ...counted],
    'update-full-lanes',
  );
  return row ?? { deferred: 0, filled: 0, reopened: 0 };
}
