import type { DeliveryJob } from '@runhook/contract';
import { isPermanentRejection } from '@runhook/database';
import { type AttemptResult, deliveryKeyOf, laneOf, logAttempt } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { reasonOfFormat } from './format.ts';
import { wakeLane } from './lane.ts';
import { LaneRate } from './lane-rate.ts';
import { type Delivery, mustUseLane, nextStep, skipsBlockedLane } from './policy/next-step.ts';
import { attemptQueued } from './queued-attempt.ts';
import { throwIfStopping } from './record/retry-while-unavailable.ts';
import { releaseSuccessors } from './run-order.ts';
import type { Target } from './target.ts';

/** Next action for the queue job: it is done, or it is delayed until the delivery's next attempt. */
export type DeliverResult = { kind: 'done' } | { kind: 'reschedule'; delayMs: number };

/** Wait until a redelivery to a blocked subscription that got no slot or permits is tried again. */
const REDELIVERY_GAP_MS = 1_000;

/** Processes the job of a delivery, such as a retry or redelivery. A delivery that PostgreSQL rejects is set aside. */
export function deliver(dispatcher: Dispatcher, job: DeliveryJob): Promise<DeliverResult> {
  return dispatcher.spans.deliver(job, () =>
    runNextStep(dispatcher, job).catch(async (error: unknown) => {
      const { deliveryId, accountId } = job;
      if (accountId === undefined || !isPermanentRejection(error)) throw error;
      await dispatcher.quarantine.setAsideDelivery({ deliveryId, accountId }, error);
      return { kind: 'done' };
    }),
  );
}

async function runNextStep(dispatcher: Dispatcher, job: DeliveryJob): Promise<DeliverResult> {
  const { record, limits, metrics, logger, clock, stopping } = dispatcher;
  const { deliveryId, accountId = await record.loadAccountId(job) } = job;
  const delivery = accountId === null ? null : await record.loadDelivery({ deliveryId, accountId });
  const step = nextStep(delivery, job.cycle, clock.nowMs());
  // The row was lost, as after the promotion of a lagging replica; an event that is still queued is fanned out again.
  if (!delivery) logger.warn({ deliveryId }, 'dropped the job of a delivery without a row');
  if (!delivery || step.kind === 'skip') return { kind: 'done' };
  if (step.kind === 'wait') return { kind: 'reschedule', delayMs: step.delayMs };
  const reason =
    step.kind === 'cancel'
      ? step.reason
      : step.target.format === null
        ? null
        : reasonOfFormat(dispatcher, delivery, step.target);
  if (step.kind === 'cancel' || reason !== null) {
    await record.cancelDelivery({ ...deliveryKeyOf(delivery), reason: reason ?? '' });
    metrics.completed.cancelled.inc();
    await releaseSuccessors(dispatcher, delivery);
    if (delivery.target?.ordered) wakeLane(dispatcher, delivery);
    return { kind: 'done' };
  }
  throwIfStopping(stopping);
  const ignoresBlock = skipsBlockedLane(delivery, step.target);
  const lane = laneOf(dispatcher, delivery, step.target);
  const skipsLane = ignoresBlock && lane.blockedMs > 0;
  if (!skipsLane && mustUseLane(delivery, step.target)) {
    limits.update(lane);
    return await deferToLane(dispatcher, delivery);
  }
  const result = await attemptNow(dispatcher, delivery, step.target, ignoresBlock);
  if (result === null) {
    if (skipsLane) return { kind: 'reschedule', delayMs: REDELIVERY_GAP_MS };
    metrics.retriesDeferred.inc();
    return await deferToLane(dispatcher, delivery);
  }
  const isRecorded = await logAttempt(dispatcher, delivery, result.record);
  const { outcome } = result;
  return isRecorded && outcome.kind === 'retry'
    ? { kind: 'reschedule', delayMs: outcome.delayMs }
    : { kind: 'done' };
}

/** Attempts a retry or a redelivery outside its lane. Returns null if it must wait. */
async function attemptNow(
  dispatcher: Dispatcher,
  delivery: Delivery,
  target: Target,
  ignoresBlock: boolean,
): Promise<AttemptResult | null> {
  const { record } = dispatcher;
  const rate = new LaneRate({ record, subscriptionId: delivery.subscriptionId });
  rate.update(target.rateLimit);
  await rate.grant(1);
  const result = await attemptQueued(dispatcher, delivery, target, { rate, ignoresBlock });
  await rate.close(rate.isExhausted);
  return result === 'no_token' ? null : result;
}

/** Leaves the next attempt to the job of the lane. */
async function deferToLane(dispatcher: Dispatcher, delivery: Delivery): Promise<DeliverResult> {
  await dispatcher.record.defer(deliveryKeyOf(delivery));
  wakeLane(dispatcher, delivery);
  return { kind: 'done' };
}
