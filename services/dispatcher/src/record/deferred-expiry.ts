import { idDay } from '@runhook/contract';
import {
  distinctDays,
  inDays,
  isItemFault,
  type Pool,
  rejectionReason,
  runStatement,
  withoutQuarantined,
} from '@runhook/database';
import { callHalving } from '@runhook/runtime';
import type { DeliveryKey } from './deliveries.ts';
import type { Quarantine } from './quarantine.ts';
import { restartExpiry } from './run-order.ts';

export interface DeferredExpiry {
  pool: Pool;
  quarantine: Pick<Quarantine, 'setAside'>;
  /** Maximum time for which a delivery may be deferred, in seconds. */
  maxSeconds: number;
  /** Maximum number of deliveries of one statement. */
  limit: number;
  reason: string;
}

/**
 * Fails deliveries that have been deferred for too long, account by account. A delivery that PostgreSQL rejects is set
 * aside, and an account that cannot be read or changed stops no other.
 * @returns the number of failed deliveries, and the errors of accounts that the next pass must retry
 */
export async function expireDeferred(
  expiry: DeferredExpiry,
): Promise<{ expired: number; errors: unknown[] }> {
  const finished: number[] = [];
  const errors: unknown[] = [];
  let expired = 0;
  while (true) {
    const accounts = await accountsWithExpired(expiry, finished);
    if (accounts.length === 0) return { expired, errors };
    for (const accountId of accounts) {
      try {
        const count = await expirePage(expiry, accountId);
        expired += count;
        if (count === 0) finished.push(accountId);
      } catch (error) {
        errors.push(error);
        finished.push(accountId);
      }
    }
  }
}

const SELECT_ACCOUNTS = `
  SELECT DISTINCT account_id AS "accountId"
  FROM (SELECT account_id FROM deliveries
        WHERE deferred_at < now() - $1::int * interval '1 second' AND account_id <> ALL ($2::bigint[])
        ORDER BY deferred_at LIMIT $3) AS old`;

async function accountsWithExpired(
  { pool, maxSeconds, limit }: DeferredExpiry,
  finished: readonly number[],
): Promise<number[]> {
  const values = [maxSeconds, finished, limit];
  const rows = await runStatement<{ accountId: string }>(
    pool,
    SELECT_ACCOUNTS,
    values,
    'accounts-with-expired',
  );
  return rows.map(({ accountId }) => Number(accountId));
}

// The time starts again after a block by Retry-After, and after the lane has waited for its rate limit.
const OF_ACCOUNT = `
  SELECT d.id AS "deliveryId", s.ordered FROM deliveries d LEFT JOIN (
    SELECT id, ordered, greatest(blocked_until, limited_at) AS waited_until
    FROM subscriptions LEFT JOIN rate_buckets ON subscription_id = id WHERE account_id = $1
  ) AS s ON s.id = d.subscription_id
  WHERE d.account_id = $1 AND d.deferred_at < now() - $2::int * interval '1 second'
    AND (s.waited_until IS NULL OR s.waited_until < now() - $2::int * interval '1 second')
  ORDER BY d.deferred_at LIMIT $3`;

interface ExpiredRow {
  [column: string]: unknown;
  deliveryId: string;
  /** Null if the row of the subscription no longer exists. */
  ordered: boolean | null;
}

// A locked delivery is being taken by its lane.
const EXPIRE = `
  WITH old AS MATERIALIZED (
    SELECT d.day, d.id, d.account_id FROM deliveries d
    WHERE d.account_id = $1 AND d.id = ANY ($2::text[]) AND ${inDays('$3', 'd')}
      AND d.deferred_at < now() - $4::int * interval '1 second'
    FOR UPDATE SKIP LOCKED
  ), expired AS (
    UPDATE deliveries d
    SET status = 'failed', reason = $5, completed_at = now(), deferred_at = NULL
    FROM old WHERE d.day = old.day AND d.id = old.id AND d.account_id = old.account_id AND d.account_id = $1
    RETURNING 1
  )
  SELECT count(*)::int AS expired FROM expired`;

/**
 * Fails a page of the account's expired deliveries, oldest first, without those of subscriptions that were blocked by
 * Retry-After or waited for their rate limit within `maxSeconds`. Returns their number: 0 if there are none, or all of
 * the page are set aside or locked.
 */
async function expirePage(
  { pool, quarantine, maxSeconds, limit, reason }: DeferredExpiry,
  accountId: number,
): Promise<number> {
  const values = [accountId, maxSeconds, limit];
  const rows = await runStatement<ExpiredRow>(pool, OF_ACCOUNT, values, 'expired-of-account');
  const keys = rows.map(({ deliveryId }): DeliveryKey => ({ deliveryId, accountId }));
  const ordered = keys.filter((_, index) => rows[index]?.ordered);
  if (ordered.length > 0) await restartExpiry(pool, accountId, ordered);
  const quarantineKeyOf = ({ deliveryId: key }: DeliveryKey) => ({ accountId, key });
  const deliverable = await withoutQuarantined(pool, 'delivery', keys, quarantineKeyOf);
  let count = 0;
  const expire = async (chosen: readonly DeliveryKey[]) => {
    const ids = chosen.map(({ deliveryId }) => deliveryId);
    const days = distinctDays(ids.map((id) => idDay('delivery', id)));
    const values = [accountId, ids, days, maxSeconds, reason];
    const [row] = await runStatement<{ expired: number }>(pool, EXPIRE, values, 'expire-deferred');
    count += row?.expired ?? 0;
  };
  const rejected = await callHalving(deliverable, expire, isItemFault);
  await quarantine.setAside(
    rejected.map(({ item, error }) => ({
      kind: 'delivery',
      ...quarantineKeyOf(item),
      reason: rejectionReason(error),
    })),
  );
  return count;
}
