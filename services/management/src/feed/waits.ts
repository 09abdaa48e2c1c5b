// SQL by hand: one statement checks the positions that all waiting readers of a process have reached.
import type { JobRunEvent } from '@runhook/contract';
import { column, type Queryable, queryRows } from '@runhook/database';
import { PolledWaits, type Waiter, type WaitOptions } from '../http/polled-waits.ts';
import type { FeedPosition } from './cursor.ts';
import { readFeedPage } from './page.ts';
import type { FeedStateReader } from './state.ts';

/** Interval of the checks for few waiting readers; for many it is a millisecond for each. */
const POLL_INTERVAL_MS = 500;

/** A reader that waits for an event that its webhook matches. */
export interface FeedWaitTarget {
  accountId: number;
  /** Position that it has read; a check moves it past events that do not match. */
  from: FeedPosition;
  /** By the webhook as it was when the wait began: the reader reads the events again, by the current one. */
  matches: (event: JobRunEvent) => boolean;
}

export interface FeedWaitsOptions extends WaitOptions {
  /** The primary. */
  database: Queryable;
  state: Pick<FeedStateReader, 'readHorizon' | 'settle'>;
}

/** Lets readers of the feed wait for events that match. */
export class FeedWaits extends PolledWaits<FeedWaitTarget> {
  constructor({ database, state, ...options }: FeedWaitsOptions) {
    super({
      pollIntervalMs: (waiters) => Math.max(POLL_INTERVAL_MS, waiters),
      checks: [(waiters) => wakeReaders(database, state, waiters)],
      ...options,
    });
  }
}

const ACCOUNT = { account_id: column.digits };

const SELECT_ACCOUNTS_WITH_EVENTS = `
  SELECT w.account_id FROM unnest($1::bigint[], $2::bigint[]) AS w (account_id, position)
  JOIN events e ON e.account_id = w.account_id AND e.position >= w.position AND e.position < $3::bigint
  GROUP BY w.account_id`;

async function wakeReaders(
  database: Queryable,
  state: FeedWaitsOptions['state'],
  waiters: readonly Waiter<FeedWaitTarget>[],
): Promise<void> {
  const horizon = await state.readHorizon();
  const byAccount = new Map<number, Waiter<FeedWaitTarget>[]>();
  for (const waiter of waiters) {
    const { accountId } = waiter.target;
    byAccount.set(accountId, [...(byAccount.get(accountId) ?? []), waiter]);
  }
  const lowest = [...byAccount.values()].map((ofAccount) => String(lowestOf(ofAccount).position));
  const values = [[...byAccount.keys()], lowest, String(horizon)];
  const rows = await queryRows(database, ACCOUNT, SELECT_ACCOUNTS_WITH_EVENTS, values, 'feed-newest');
  for (const { account_id: accountId } of rows) {
    const ofAccount = byAccount.get(Number(accountId)) ?? [];
    // The next check follows an error, which must not keep other accounts waiting.
    await wakeReadersOf(database, state, horizon, ofAccount).catch(() => undefined);
  }
}

/** Reads the new events of an account once for all of its readers. */
async function wakeReadersOf(
  database: Queryable,
  state: FeedWaitsOptions['state'],
  horizon: bigint,
  waiters: readonly Waiter<FeedWaitTarget>[],
): Promise<void> {
  const [first] = waiters;
  if (first === undefined) return;
  const { accountId } = first.target;
  await state.settle(accountId);
  const due = new Set<Waiter<FeedWaitTarget>>();
  const { next } = await readFeedPage(database, {
    accountId,
    from: lowestOf(waiters),
    horizon,
    limit: 1,
    itemOf(event, position) {
      for (const waiter of waiters)
        if (isBefore(waiter.target.from, position) && waiter.target.matches(event)) due.add(waiter);
      return null;
    },
  });
  for (const waiter of waiters) {
    if (due.has(waiter)) waiter.wake(true);
    else if (isBefore(waiter.target.from, next)) waiter.target.from = next;
  }
}

function lowestOf(waiters: readonly Waiter<FeedWaitTarget>[]): FeedPosition {
  return waiters
    .map(({ target }) => target.from)
    .reduce((one, other) => (isBefore(other, one) ? other : one));
}

function isBefore(one: FeedPosition, other: FeedPosition): boolean {
  return one.position < other.position || (one.position === other.position && one.eventId < other.eventId);
}
