import { attemptsLeft, deliveryJobId, type JobRunEvent } from '@runhook/contract';
import { inTransaction, type Pool, type Queryable, runStatement, type Transaction } from '@runhook/database';
import type { DeliveryQueue, EventQueue } from '@runhook/queue';
import type { RetryPolicy } from '../policy/outcome.ts';

/** What one run of the reconciler put back onto the queue. */
export interface Reconciliation {
  deliveries: number;
  events: number;
}

export interface ReconcileDependencies {
  pool: Pool;
  events: Pick<EventQueue, 'add' | 'holds'>;
  deliveries: Pick<DeliveryQueue, 'add' | 'holds'>;
  retryPolicy: RetryPolicy;
  /** How long a delivery or an event may be overdue before its queue job is looked for; above an attempt's deadline. */
  graceMs: number;
}

/** A call to the queue has a few seconds and looks for each id by itself: with more it would fail while all is slow. */
const PAGE_SIZE = 100;
/** So that one run neither floods the queue nor outlasts its turn; the next run goes on with what is left. */
const PUT_BACK_MAX = 5_000;
const LOOKED_AT_MAX = 20_000;
const LOCK = `SELECT pg_try_advisory_xact_lock(hashtext('runhook.reconcile')) AS mine`;

/**
 * PostgreSQL is the record: whatever is pending there and no longer in the queue (a flushed or lost Redis, an eviction,
 * an operator's mistake) is put back with the attempts it has left. Answers null when another dispatcher is at it.
 */
export async function reconcile(dependencies: ReconcileDependencies): Promise<Reconciliation | null> {
  return await inTransaction(dependencies.pool, async (transaction) => {
    const [lock] = await runStatement<{ mine: boolean }>(transaction, LOCK, []);
    if (!lock?.mine) return null;
    return {
      events: await putBackEvents(dependencies, transaction),
      deliveries: await putBackDeliveries(dependencies, transaction),
    };
  });
}

async function putBackEvents(
  { events, graceMs }: ReconcileDependencies,
  transaction: Transaction,
): Promise<number> {
  const forgotten = await forgottenEvents(transaction, { graceMs, limit: PUT_BACK_MAX });
  let putBack = 0;
  for (let start = 0; start < forgotten.length; start += PAGE_SIZE) {
    const page = forgotten.slice(start, start + PAGE_SIZE);
    const held = await events.holds(page.map(({ eventId }) => eventId));
    const lost = page.filter(({ eventId }) => !held.has(eventId));
    await events.add(lost);
    putBack += lost.length;
  }
  return putBack;
}

interface EventRow {
  eventId: string;
  eventType: string;
  accountId: string;
  timestamp: string;
  data: JobRunEvent['data'];
}

const FORGOTTEN = `
  SELECT e.id AS "eventId", e.event_type AS "eventType", e.account_id AS "accountId", e."timestamp", e.data
  FROM events e
  WHERE e.fanned_out_at IS NULL AND e.created_at < now() - $1::int * interval '1 millisecond'
    AND NOT EXISTS (SELECT FROM outbox o WHERE o.day = e.day AND o.event_id = e.id)
  ORDER BY e.created_at
  LIMIT $2`;

/** Events that management committed, that left the outbox, and that nobody fanned out. Oldest first. */
async function forgottenEvents(
  database: Queryable,
  options: { graceMs: number; limit: number },
): Promise<JobRunEvent[]> {
  const rows = await runStatement<EventRow & { [column: string]: unknown }>(
    database,
    FORGOTTEN,
    [options.graceMs, options.limit],
    'forgotten-events',
  );
  return rows.map(({ eventId, eventType, accountId, timestamp, data }) => {
    return { eventId, eventType, accountId: Number(accountId), timestamp, data } as JobRunEvent;
  });
}

async function putBackDeliveries(
  dependencies: ReconcileDependencies,
  transaction: Transaction,
): Promise<number> {
  const { deliveries, retryPolicy, graceMs } = dependencies;
  let after = FIRST_OVERDUE;
  let putBack = 0;
  for (let lookedAt = 0; lookedAt < LOOKED_AT_MAX && putBack < PUT_BACK_MAX; lookedAt += PAGE_SIZE) {
    const page = await overdueDeliveries(transaction, { graceMs, after, limit: PAGE_SIZE });
    const lost = await lostOnes(dependencies, page);
    await deliveries.add(
      lost.map(({ id, cycle, attemptCount }) => {
        const left = attemptsLeft(retryPolicy, { cycle, attemptCount });
        return { deliveryId: id, cycle, delayMs: 0, attemptsLeft: left };
      }),
    );
    putBack += lost.length;
    const last = page.at(-1);
    if (!last || page.length < PAGE_SIZE) break;
    after = last;
  }
  return putBack;
}

/** A first attempt is made by the event's own job, so a delivery without attempts is lost only if that job is gone. */
async function lostOnes({ events, deliveries }: ReconcileDependencies, page: OverdueDelivery[]) {
  const withoutAttempts = page.filter(({ attemptCount }) => attemptCount === 0);
  const [heldDeliveries, heldEvents] = await Promise.all([
    deliveries.holds(page.map(({ id, cycle }) => ({ deliveryId: id, cycle }))),
    events.holds([...new Set(withoutAttempts.map(({ eventId }) => eventId))]),
  ]);
  return page.filter(
    ({ id, cycle, attemptCount, eventId }) =>
      !heldDeliveries.has(deliveryJobId({ deliveryId: id, cycle })) &&
      (attemptCount > 0 || !heldEvents.has(eventId)),
  );
}

/** A pending delivery whose time has passed, as far as the reconciler needs it. */
interface OverdueDelivery {
  id: string;
  eventId: string;
  cycle: number;
  attemptCount: number;
  /** Where the next page begins: microseconds since the epoch as digits, with the id to part those of one moment. */
  dueMicros: string;
}

type OverdueCursor = Pick<OverdueDelivery, 'dueMicros' | 'id'>;

const FIRST_OVERDUE: OverdueCursor = { dueMicros: '0', id: '' };

const OVERDUE = `
  SELECT id, event_id AS "eventId", cycle, attempt_count AS "attemptCount",
         (extract(epoch FROM next_attempt_at) * 1000000)::bigint AS "dueMicros"
  FROM deliveries
  WHERE status = 'pending' AND next_attempt_at < now() - $1::int * interval '1 millisecond'
    AND (next_attempt_at, id) > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3)
  ORDER BY next_attempt_at, id
  LIMIT $4`;

/** Longest overdue first. */
async function overdueDeliveries(
  database: Queryable,
  page: { graceMs: number; after: OverdueCursor; limit: number },
): Promise<OverdueDelivery[]> {
  const values = [page.graceMs, page.after.dueMicros, page.after.id, page.limit];
  return await runStatement<OverdueDelivery & { [column: string]: unknown }>(
    database,
    OVERDUE,
    values,
    'overdue-deliveries',
  );
}
