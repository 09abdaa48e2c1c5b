import { attemptsLeft, deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import { type Attemptable, attempt, laneOf, logAndSchedule } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { wakeLane } from './lane.ts';
import { fullLaneReason, type KnownSubscription, matching } from './policy/next-step.ts';
import type { FanOutCommit, NewDelivery } from './record/commit-fan-out.ts';
import type { Target } from './target.ts';

/**
 * How long a plan may wait for its attempt. The commit found the subscription as it was planned with; what waits
 * longer is parked, and its subscription read again for the attempt.
 */
const FRESH_MS = 500;

/**
 * An event with more deliveries than this is committed in pages, so that its statement does not stand before everybody
 * else's, and claimed after the last: a crash between pages resumes with what is missing.
 */
const AT_ONCE_MAX = 50;

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
    const works: Promise<void>[] = [];
    const committed = await commitPlan(dispatcher, event, (page, plannedAtMs, leaveLine) => {
      for (const one of page) {
        if (one.isShut) {
          leaveLine();
          countWithoutSlot(dispatcher, one);
        } else {
          const deliver = () => deliverFirst(dispatcher, one, plannedAtMs, leaveLine);
          works.push(spans.deliverFirst(one.delivery, deliver));
        }
      }
    }).finally(() => allEnded(works));
    if (!committed) return { kind: 'unknown_account' };
    const { deliveries, result } = committed;
    if (result === 'claimed') {
      metrics.fanOutSize.observe(deliveries);
      // Pages that were committed before the interruption.
      if (interrupted && deliveries > AT_ONCE_MAX) await resume(dispatcher, event.eventId);
      return { kind: 'fanned_out', deliveries };
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
  /** Its lane had no slot when it was planned: it is committed as parked or, with a `fullReason`, as cancelled. */
  isShut: boolean;
  /** Why it is cancelled if it finds no slot; null: it is parked then. */
  fullReason: string | null;
}

/**
 * Told of what was committed, with the time that it was planned at.
 * @param leaveLine to be called once for each that has its place, or needs none
 */
type Begin = (page: PlannedDelivery[], plannedAtMs: number, leaveLine: () => void) => void;

/** Plans with the subscriptions as they are known, and again whenever a commit finds that they are others by now. */
async function commitPlan(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  begin: Begin,
): Promise<{ deliveries: number; result: FanOutCommit } | null> {
  const { accounts } = dispatcher.record;
  let isBegun = false;
  const beginPage: Begin = (...page) => {
    isBegun = true;
    begin(...page);
  };
  while (true) {
    const account = await accounts.of(event.accountId);
    if (!account) return null;
    const known = matching(account, event);
    // Lanes that its own first pages have filled take the rest of it, too.
    const subscriptions = isBegun ? known.map((one) => ({ ...one, isFull: false })) : known;
    const commit = subscriptions.length > AT_ONCE_MAX ? commitInPages : commitAtOnce;
    const result = await commit(dispatcher, event, account.version, subscriptions, beginPage);
    if (result !== 'outdated') return { deliveries: subscriptions.length, result };
    accounts.forget(account);
  }
}

async function commitAtOnce(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  version: string,
  subscriptions: readonly KnownSubscription[],
  begin: Begin,
): Promise<FanOutCommit> {
  const { record, planned: line } = dispatcher;
  // What is planned before its turn is not fresh any more when that comes.
  let inLine = subscriptions.length;
  if (inLine > 0) await line.acquire(inLine);
  try {
    const plannedAtMs = performance.now();
    const planned = subscriptions.map((subscription) => plan(dispatcher, event, subscription));
    const result = await record.commitFanOut({ event, version, deliveries: planned.map(newDelivery) });
    if (result === 'claimed') {
      inLine = 0;
      begin(planned, plannedAtMs, () => line.release());
    }
    return result;
  } finally {
    line.release(inLine);
  }
}

/** Pages have a turn of their own. */
const NOT_IN_LINE = () => {};

/** The event is claimed once all pages are committed. What an earlier try committed is left to whoever has it. */
async function commitInPages(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  version: string,
  subscriptions: readonly KnownSubscription[],
  begin: Begin,
): Promise<FanOutCommit> {
  const { record } = dispatcher;
  for (let start = 0, end = 0; start < subscriptions.length; start = end) {
    let page: PlannedDelivery[] = [];
    let plannedAtMs = 0;
    const added = await record.commitPage((size) => {
      end = start + size;
      plannedAtMs = performance.now();
      page = subscriptions.slice(start, end).map((subscription) => plan(dispatcher, event, subscription));
      return { event, version, deliveries: page.map(newDelivery) };
    });
    if (added === null) return 'outdated';
    begin(
      page.filter(({ delivery }) => added.has(delivery.id)),
      plannedAtMs,
      NOT_IN_LINE,
    );
  }
  return await record.commitFanOut({ event, version, deliveries: [], isPaged: true });
}

function newDelivery({ delivery, isShut, fullReason }: PlannedDelivery): NewDelivery {
  const { id, subscriptionId, webhookName } = delivery;
  const cancelReason = isShut && fullReason !== null ? fullReason : undefined;
  return { id, subscriptionId, webhookName, isParked: isShut, cancelReason };
}

function plan(
  { limits, pendingMax }: Dispatcher,
  event: JobRunEvent,
  { id, name, isFull, target }: KnownSubscription,
): PlannedDelivery {
  const delivery: Attemptable = {
    id: deliveryIdFor(event.eventId, id),
    day: idDay('event', event.eventId),
    trigger: 'automatic',
    cycle: 0,
    attemptCount: 0,
    webhookName: name,
    subscriptionId: id,
    event,
  };
  const fullReason = isFull ? fullLaneReason(pendingMax) : null;
  return { target, delivery, isShut: limits.isShut(laneOf(delivery, target)), fullReason };
}

async function deliverFirst(
  dispatcher: Dispatcher,
  planned: PlannedDelivery,
  plannedAtMs: number,
  leaveLine: () => void,
): Promise<void> {
  const { record, limits, semaphore, metrics } = dispatcher;
  const { delivery, target, fullReason } = planned;
  await semaphore.acquire();
  leaveLine();
  const isFresh = performance.now() - plannedAtMs < FRESH_MS;
  const slot = isFresh ? limits.acquireInPlace(laneOf(delivery, target)) : null;
  if (!slot) {
    semaphore.release();
    if (fullReason === null) await record.park(delivery.id);
    else await record.cancelDelivery({ deliveryId: delivery.id, reason: fullReason });
    return countWithoutSlot(dispatcher, planned);
  }
  metrics.deliveries.in_place.inc();
  const attempted = attempt(dispatcher, slot, delivery, target).finally(() => semaphore.release());
  await logAndSchedule(dispatcher, delivery, await attempted);
}

/** Once its row says what became of it: what is parked is for its lane, what is cancelled for nobody. */
function countWithoutSlot(dispatcher: Dispatcher, { delivery, fullReason }: PlannedDelivery): void {
  const { metrics } = dispatcher;
  if (fullReason === null) {
    metrics.deliveries.parked.inc();
    wakeLane(dispatcher, delivery.subscriptionId);
  } else {
    metrics.deliveries.cancelled.inc();
    metrics.completed.cancelled.inc();
  }
}

/** Queues what is pending; what is queued already stays as it is. */
async function resume(
  { record, queue, retryPolicy, attemptMs }: Dispatcher,
  eventId: string,
): Promise<number> {
  const pending = await record.pendingDeliveriesOf(eventId, FRESH_MS + attemptMs);
  await Promise.all(
    pending.map(({ id, cycle, attemptCount, delayMs }) => {
      const left = attemptsLeft(retryPolicy, { cycle, attemptCount });
      return queue.enqueue({ deliveryId: id, cycle, delayMs, attemptsLeft: left });
    }),
  );
  return pending.length;
}
