import { deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import {
  type AttemptableDelivery,
  type AttemptResult,
  attempt,
  deliveryKeyOf,
  laneOf,
  logAndSchedule,
  reportAttempt,
} from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { reasonOfFormat } from './format.ts';
import { wakeLane } from './lane.ts';
import { type CachedSubscription, fullLaneReason, mustUseLane } from './policy/next-step.ts';
import type { Lane } from './policy/origins.ts';
import type { Slot } from './policy/subscription-limiter.ts';
import type { CommitOutcome, NewDelivery } from './record/commit-events.ts';
import { releaseSuccessors } from './run-order.ts';
import type { Target } from './target.ts';

/**
 * Time for which a planned subscription counts as current, and so the maximum wait of a first attempt for a slot. A
 * delivery that would wait longer is deferred, and its subscription is read again for the attempt.
 */
export const FRESH_MS = 500;

/** State of a first attempt: planned, in flight, or finished with its result. */
export interface FirstAttempt {
  delivery: AttemptableDelivery;
  target: Target;
  /**
   * It is committed as deferred or cancelled: when it was planned, no slot was free or expected within FRESH_MS, or only
   * the job of its lane sends to its target.
   */
  waitsInLane: boolean;
  /** Reason for cancelling it if it finds no slot, or because its format sends nothing; null to defer it. */
  cancelReason: string | null;
  /** Result; null when it got no permits or no slot, undefined until it has ended. */
  result: AttemptResult | null | undefined;
  /** The value of `result` that was committed with its event. */
  committedResult: AttemptResult | null | undefined;
}

export function createFirstAttempt(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  { id, name, isFull, target }: CachedSubscription,
): FirstAttempt {
  const { limits, pendingMax } = dispatcher;
  const delivery: AttemptableDelivery = {
    id: deliveryIdFor(event.eventId, id),
    day: idDay('event', event.eventId),
    trigger: 'automatic',
    cycle: 0,
    attemptCount: 0,
    webhookName: name,
    subscriptionId: id,
    event,
  };
  const formatReason = target.format === null ? null : reasonOfFormat(dispatcher, delivery, target);
  const cancelReason = formatReason ?? (isFull ? fullLaneReason(pendingMax) : null);
  const lane = laneOf(dispatcher, delivery, target);
  const isSaturated = limits.isSaturated(lane) && limits.expectedWaitMs(lane, 0) > FRESH_MS;
  const waitsInLane = isSaturated || mustUseLane(delivery, target) || formatReason !== null;
  const initialState = { result: undefined, committedResult: undefined };
  return { target, delivery, waitsInLane, cancelReason, ...initialState };
}

/** Returns the row of the current state: delivered; without a slot, deferred or cancelled; otherwise pending. */
export function newDelivery({ delivery, waitsInLane, cancelReason, result }: FirstAttempt): NewDelivery {
  const { id, subscriptionId, webhookName } = delivery;
  const isDeferred = waitsInLane || result === null;
  const delivered = result?.record.status === 'delivered' ? result.record : undefined;
  const reason = isDeferred ? (cancelReason ?? undefined) : undefined;
  return { id, subscriptionId, webhookName, isDeferred, cancelReason: reason, delivered };
}

/** The commit of an event together with its first attempts. */
export interface FirstAttemptCommit {
  readonly outcome: Promise<CommitOutcome>;
  /** Must be called once for each first attempt, whatever its result. */
  attemptEnded(): void;
}

interface BeginOptions {
  plannedAtMs: number;
  /** Number of its permits, which are released when it has ended; 0 to defer it. */
  permits: number;
  /** Omitted when the delivery is already on record. */
  commit?: FirstAttemptCommit;
}

/** Makes the attempt, if there are permits and a slot. Afterwards records its result if the event's commit lacks it. */
export function beginFirstAttempt(
  dispatcher: Dispatcher,
  firstAttempt: FirstAttempt,
  { plannedAtMs, permits, commit }: BeginOptions,
): Promise<void> {
  return dispatcher.spans.deliverFirst(firstAttempt.delivery, async () => {
    const untilMs = plannedAtMs + FRESH_MS;
    try {
      firstAttempt.result =
        permits === 0
          ? null
          : await sendFirstAttempt(dispatcher, firstAttempt, untilMs, commit === undefined);
    } finally {
      const { accountId } = firstAttempt.delivery.event;
      dispatcher.requests.permits.firstAttempts.release(accountId, permits);
      commit?.attemptEnded();
    }
    await recordUncommittedResult(dispatcher, firstAttempt, await commit?.outcome);
  });
}

/** Returns null when the delivery gets no slot: it is deferred or cancelled. */
async function sendFirstAttempt(
  dispatcher: Dispatcher,
  { delivery, target, waitsInLane }: FirstAttempt,
  untilMs: number,
  isOnRecord: boolean,
): Promise<AttemptResult | null> {
  if (waitsInLane) return null;
  const { requests, metrics } = dispatcher;
  requests.enter(delivery.subscriptionId);
  try {
    const slot = await acquireSlot(dispatcher, laneOf(dispatcher, delivery, target), untilMs, isOnRecord);
    if (!slot) return null;
    metrics.deliveries.immediate.inc();
    return await attempt(dispatcher, slot, delivery, target);
  } finally {
    requests.leave(delivery.subscriptionId);
  }
}

/** Waits for a slot of the lane until `untilMs`, if `RequestsInFlight` allows it. Returns null if it gets none. */
async function acquireSlot(
  { limits, requests, record }: Dispatcher,
  lane: Lane,
  untilMs: number,
  isOnRecord: boolean,
): Promise<Slot | null> {
  const { subscriptionId } = lane;
  for (;;) {
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0 || (!isOnRecord && record.commits.mustCommitFirst)) return null;
    const expectedMs = limits.expectedWaitMs(lane, requests.waiterCount(subscriptionId));
    const slot = limits.acquireFirst(lane);
    if (slot || expectedMs > leftMs || !requests.canWait(subscriptionId)) return slot;
    await requests.waitForRelease(subscriptionId, leftMs);
  }
}

/**
 * Records the result of a first attempt that the commit of the event did not include.
 * @param outcome undefined when the delivery was on record before its attempt
 */
async function recordUncommittedResult(
  dispatcher: Dispatcher,
  firstAttempt: FirstAttempt,
  outcome: CommitOutcome | undefined,
): Promise<void> {
  const { record } = dispatcher;
  const { delivery, result, committedResult, waitsInLane, cancelReason } = firstAttempt;
  // Another body is on record under this id, so a request with this body is not an attempt of the recorded event.
  if (outcome?.result === 'conflict') return;
  const wasAdded = outcome === undefined || outcome.added.has(delivery.id);
  if (result) {
    if (wasAdded && committedResult?.record.status === 'delivered')
      return reportAttempt(dispatcher, delivery, result.record);
    // The row was inserted without this attempt, by this process or by another. Only attempts that the row lacks are added.
    return await logAndSchedule(dispatcher, delivery, result);
  }
  if (!wasAdded) return;
  if (!waitsInLane && committedResult === undefined) {
    if (cancelReason === null) await record.defer(deliveryKeyOf(delivery));
    else await record.cancelDelivery({ ...deliveryKeyOf(delivery), reason: cancelReason });
  }
  await finishDeferredOrCancelled(dispatcher, firstAttempt);
}

/**
 * Counts a delivery without a slot once its row is updated. Wakes the lane of a deferred one, or of the deliveries that
 * have waited for the event of a cancelled one.
 */
async function finishDeferredOrCancelled(
  dispatcher: Dispatcher,
  { delivery, target, cancelReason }: FirstAttempt,
): Promise<void> {
  const { metrics } = dispatcher;
  if (cancelReason === null) {
    metrics.deliveries.deferred.inc();
  } else {
    metrics.deliveries.cancelled.inc();
    metrics.completed.cancelled.inc();
    await releaseSuccessors(dispatcher, { ...delivery, target });
  }
  if (cancelReason === null || target.ordered) wakeLane(dispatcher, delivery);
}
