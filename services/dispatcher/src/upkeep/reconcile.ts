import { deliveryJobId } from '@runhook/contract';
import { inTransaction, type Pool, runStatement, type Transaction } from '@runhook/database';
import type { DeliveryQueue, EventQueue } from '@runhook/queue';
import type { RetryPolicy } from '../retry-schedule.ts';
import { forgottenEvents } from './forgotten-events.ts';
import { FIRST_OVERDUE, type OverdueDelivery, overdueDeliveries } from './overdue-deliveries.ts';

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

const PAGE_SIZE = 500;
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
  const held = await events.holds(forgotten.map(({ eventId }) => eventId));
  const lost = forgotten.filter(({ eventId }) => !held.has(eventId));
  await events.add(lost);
  return lost.length;
}

async function putBackDeliveries(
  dependencies: ReconcileDependencies,
  transaction: Transaction,
): Promise<number> {
  const { deliveries, retryPolicy, graceMs } = dependencies;
  let after = FIRST_OVERDUE as Pick<OverdueDelivery, 'dueMicros' | 'id'>;
  let putBack = 0;
  for (let lookedAt = 0; lookedAt < LOOKED_AT_MAX && putBack < PUT_BACK_MAX; lookedAt += PAGE_SIZE) {
    const page = await overdueDeliveries(transaction, { graceMs, after, limit: PAGE_SIZE });
    const lost = await lostOnes(dependencies, page);
    await deliveries.add(
      lost.map(({ id, cycle, attemptCount }) => {
        const attemptsLeft = retryPolicy.retriesMax + 1 - (attemptCount - cycle);
        return { deliveryId: id, cycle, delayMs: 0, attemptsLeft };
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
