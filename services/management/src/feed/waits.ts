// SQL by hand: one statement checks the positions that all waiting readers of a process have reached.
import { column, type Queryable, queryRows } from '@runhook/database';
import { PolledWaits, type Waiter, type WaitOptions } from '../http/polled-waits.ts';
import type { FeedStateReader } from './state.ts';

/** Interval of the checks for few waiting readers; for many it is a millisecond for each. */
const POLL_INTERVAL_MS = 500;

/** A reader that has read everything below the position. */
export interface FeedWaitTarget {
  accountId: number;
  position: bigint;
}

export interface FeedWaitsOptions extends WaitOptions {
  /** The primary. */
  database: Queryable;
  state: Pick<FeedStateReader, 'readHorizon'>;
}

/** Lets readers of the feed wait for events of their account. */
export class FeedWaits extends PolledWaits<FeedWaitTarget> {
  constructor({ database, state, ...options }: FeedWaitsOptions) {
    super({
      pollIntervalMs: (waiters) => Math.max(POLL_INTERVAL_MS, waiters),
      checks: [async (waiters) => wakeReaders(database, await state.readHorizon(), waiters)],
      ...options,
    });
  }
}

const NEWEST = { account_id: column.digits, position: column.digits };

const SELECT_NEWEST = `
  SELECT w.account_id, max(e.position) AS position FROM unnest($1::bigint[], $2::bigint[]) AS w (account_id, position)
  JOIN events e ON e.account_id = w.account_id AND e.position >= w.position AND e.position < $3::bigint
  GROUP BY w.account_id`;

async function wakeReaders(
  database: Queryable,
  horizon: bigint,
  waiters: readonly Waiter<FeedWaitTarget>[],
): Promise<void> {
  const lowest = new Map<number, bigint>();
  for (const { target } of waiters) {
    const position = lowest.get(target.accountId);
    if (position === undefined || target.position < position) lowest.set(target.accountId, target.position);
  }
  const values = [[...lowest.keys()], [...lowest.values()].map(String), String(horizon)];
  const rows = await queryRows(database, NEWEST, SELECT_NEWEST, values, 'feed-newest');
  const newest = new Map(rows.map(({ account_id: id, position }) => [Number(id), BigInt(position)]));
  for (const { target, wake } of waiters)
    if ((newest.get(target.accountId) ?? -1n) >= target.position) wake(true);
}
