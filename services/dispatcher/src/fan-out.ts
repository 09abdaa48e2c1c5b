import { attemptsLeft, deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import { type Attemptable, attempt, laneOf, logAndSchedule } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LaneLimits } from './policy/lane-limits.ts';
import { type KnownSubscription, matching } from './policy/next-step.ts';
import type { FanOutCommit } from './record/commit-fan-out.ts';
import type { Target } from './target.ts';

/**
 * How long a plan may wait for its attempt. The commit found the subscription as it was planned with; what waits
 * longer is parked, and its subscription read again for the attempt.
 */
const FRESH_MS = 500;

export type FanOutResult =
  | { kind: 'fanned_out'; deliveries: number }
  | { kind: 'duplicate' }
  | { kind: 'resumed'; deliveries: number }
  | { kind: 'unknown_account' };

/**
 * Turns an event into deliveries and makes their first attempts: the event and one row per matching subscription
 * are committed first, then each delivery is attempted in place or, without a slot in its lane, parked. When this
 * resolves, every delivery is attempted and recorded, or parked: the job may go.
 * @param interrupted this job ran before and did not end, so deliveries it committed may be left undone
 */
export function fanOut(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  interrupted: boolean,
): Promise<FanOutResult> {
  const { spans, metrics } = dispatcher;
  return spans.fanOut(event, async () => {
    const committed = await commitPlan(dispatcher, event);
    if (!committed) return { kind: 'unknown_account' };
    const { planned, plannedAtMs, result } = committed;
    if (result === 'claimed') {
      metrics.fanOutSize.observe(planned.length);
      await allEnded(
        planned.map((one) =>
          spans.deliverFirst(one.delivery, () => deliverFirst(dispatcher, one, plannedAtMs)),
        ),
      );
      return { kind: 'fanned_out', deliveries: planned.length };
    }
    // Another job with this event's id owns what is pending, and a second request must not come from here.
    if (!interrupted) return { kind: 'duplicate' };
    return { kind: 'resumed', deliveries: await resume(dispatcher, event.eventId) };
  });
}

/**
 * Waits for the others when one fails: the job comes again and queues what is pending, and an attempt that were still on
 * its way then would be made twice. Throws the first error.
 */
async function allEnded(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

interface PlannedDelivery {
  delivery: Attemptable;
  target: Target;
  /** Its lane had no slot when it was planned: it is committed as parked. */
  isParked: boolean;
}

/** Plans with the subscriptions as they are known, and again whenever the commit finds that they are others by now. */
async function commitPlan(
  { record, limits }: Dispatcher,
  event: JobRunEvent,
): Promise<{ planned: PlannedDelivery[]; plannedAtMs: number; result: FanOutCommit } | null> {
  while (true) {
    const account = await record.accounts.of(event.accountId);
    if (!account) return null;
    const plannedAtMs = performance.now();
    const day = idDay('event', event.eventId);
    const planned = matching(account, event).map((subscription) => plan(limits, event, day, subscription));
    const deliveries = planned.map(({ delivery: { id, subscriptionId, webhookName }, isParked }) => {
      return { id, subscriptionId, webhookName, isParked };
    });
    const result = await record.commitFanOut({ event, version: account.version, deliveries });
    if (result !== 'outdated') return { planned, plannedAtMs, result };
    record.accounts.forget(account);
  }
}

function plan(
  limits: LaneLimits,
  event: JobRunEvent,
  day: string,
  { id, name, target }: KnownSubscription,
): PlannedDelivery {
  const delivery: Attemptable = {
    id: deliveryIdFor(event.eventId, id),
    day,
    trigger: 'automatic',
    cycle: 0,
    attemptCount: 0,
    webhookName: name,
    subscriptionId: id,
    event,
  };
  return { target, delivery, isParked: limits.isShut(laneOf(delivery, target)) };
}

async function deliverFirst(
  dispatcher: Dispatcher,
  { delivery, target, isParked }: PlannedDelivery,
  plannedAtMs: number,
): Promise<void> {
  const { record, queue, limits, semaphore, metrics } = dispatcher;
  if (isParked) {
    metrics.deliveries.parked.inc();
    queue.wakeLane(delivery.subscriptionId);
    return;
  }
  await semaphore.acquire();
  const isFresh = performance.now() - plannedAtMs < FRESH_MS;
  const slot = isFresh ? limits.acquireInPlace(laneOf(delivery, target)) : null;
  if (!slot) {
    semaphore.release();
    metrics.deliveries.parked.inc();
    await record.park(delivery.id);
    queue.wakeLane(delivery.subscriptionId);
    return;
  }
  metrics.deliveries.in_place.inc();
  const attempted = attempt(dispatcher, slot, delivery, target).finally(() => semaphore.release());
  await logAndSchedule(dispatcher, delivery, await attempted);
}

/** Queues what is pending; what is queued already stays as it is. */
async function resume({ record, queue, retryPolicy }: Dispatcher, eventId: string): Promise<number> {
  const pending = await record.pendingDeliveriesOf(eventId);
  await Promise.all(
    pending.map(({ id, cycle, attemptCount, delayMs }) => {
      const left = attemptsLeft(retryPolicy, { cycle, attemptCount });
      return queue.enqueue({ deliveryId: id, cycle, delayMs, attemptsLeft: left });
    }),
  );
  return pending.length;
}
