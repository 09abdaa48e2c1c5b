import type { DeliveryJob } from '@runhook/contract';
import { isPermanentRejection } from '@runhook/database';
import { deliveryKeyOf, laneOf, logAttempt } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { reasonOfFormat } from './format.ts';
import { attemptQueued, wakeLane } from './lane.ts';
import { type Delivery, mustUseLane, nextStep, nextTrigger } from './policy/next-step.ts';
import { throwIfStopping } from './record/retry-while-unavailable.ts';

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
    return { kind: 'done' };
  }
  throwIfStopping(stopping);
  if (mustUseLane(delivery, step.target)) {
    limits.update(laneOf(dispatcher, delivery, step.target));
    return await deferToLane(dispatcher, delivery);
  }
  const isRedelivery = nextTrigger(delivery) === 'manual' && !delivery.isRecovered;
  const result = await attemptQueued(dispatcher, delivery, step.target, isRedelivery);
  if (result === null) {
    // In its lane, a redelivery would wait for the end of the block.
    if (isRedelivery && laneOf(dispatcher, delivery, step.target).blockedMs > 0)
      return { kind: 'reschedule', delayMs: REDELIVERY_GAP_MS };
    metrics.retriesDeferred.inc();
    return await deferToLane(dispatcher, delivery);
  }
  const isRecorded = await logAttempt(dispatcher, delivery, result.record);
  const { outcome } = result;
  return isRecorded && outcome.kind === 'retry'
    ? { kind: 'reschedule', delayMs: outcome.delayMs }
    : { kind: 'done' };
}

/** Leaves the next attempt to the job of the lane. */
async function deferToLane(dispatcher: Dispatcher, delivery: Delivery): Promise<DeliverResult> {
  await dispatcher.record.defer(deliveryKeyOf(delivery));
  wakeLane(dispatcher, delivery);
  return { kind: 'done' };
}
