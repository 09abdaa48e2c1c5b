import { isItemFault, type Queryable, runStatement } from '@runhook/database';
import { callHalving } from '@runhook/runtime';
import type { Quarantine } from '../record/quarantine.ts';

/** A change of all subscriptions that meet a condition, over all accounts. */
export interface SubscriptionChange {
  /** Name of the prepared statement. */
  name: string;
  /** SQL over the subscription `s`. Its first parameter is `$2`. */
  condition: string;
  /** Values of the parameters from `$2` on; `changeSubscriptions` uses `$1`. */
  values: readonly unknown[];
  /** Returns SQL that changes the subscriptions of a subquery and returns one row for each. */
  statement: (ids: string) => string;
}

const PAGE_SIZE = 500;

// Items that were set aside are unchanged until an operator releases them.
const find = (condition: string) => `
  SELECT s.id FROM subscriptions s
  WHERE ${condition} AND NOT EXISTS (
    SELECT FROM quarantined_items q WHERE q.account_id = s.account_id AND q.kind = 'status' AND q.key = s.id)
  ORDER BY s.id LIMIT $1`;

const lock = (condition: string) => `
  SELECT s.id FROM subscriptions s WHERE s.id = ANY ($1::text[]) AND ${condition}
  ORDER BY s.id FOR NO KEY UPDATE SKIP LOCKED`;

/**
 * Changes subscriptions in pages. A subscription whose change PostgreSQL rejects is set aside, and the others change. Safe to
 * run concurrently: only one of several calls changes a subscription.
 * @returns the number of subscriptions that were changed
 */
export async function changeSubscriptions(
  database: Queryable,
  quarantine: Pick<Quarantine, 'setAsideStatus'>,
  { name, condition, values, statement }: SubscriptionChange,
  pageSize = PAGE_SIZE,
): Promise<number> {
  let count = 0;
  for (let isContinued = true; isContinued; ) {
    const rows = await runStatement(database, find(condition), [pageSize, ...values], `find-${name}`);
    const before = count;
    const change = async (ids: readonly unknown[]) => {
      count += (await runStatement(database, statement(lock(condition)), [ids, ...values], name)).length;
    };
    const ids = rows.map(({ id }) => id as string);
    const rejected = await callHalving(ids, change, isItemFault);
    for (const { item, error } of rejected) await quarantine.setAsideStatus(item, error);
    // A rejected statement may keep its locks until after its error arrives, so that the next one skips rows.
    isContinued = rejected.length > 0 || (ids.length === pageSize && count > before);
  }
  return count;
}
