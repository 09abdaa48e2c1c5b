import type { LaneJob } from '@runhook/contract';
import type { AttemptableDelivery } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { LanePass, POLL_EVERY_MS } from './lane-pass.ts';
import { LaneRate } from './lane-rate.ts';
import { throwIfStopping } from './record/retry-while-unavailable.ts';

/** Result of a lane's job: nothing is deferred any more, or the job must run again. */
export type LaneResult = { kind: 'done' } | { kind: 'reschedule'; delayMs: number };

/** Minimum delay of the job of a lane with free slots, but without permits or capacity of its server. */
const FULL_WAIT_MS = 1_000;

/**
 * Runs the job of a lane: takes the deferred deliveries, oldest first, as slots become free, and attempts them. Each
 * subscription with deferred deliveries has one such job, however many there are (docs/architecture.md#lanes).
 */
export async function drainLane(dispatcher: Dispatcher, job: LaneJob): Promise<LaneResult> {
  const { limits, stopping, record } = dispatcher;
  const { subscriptionId, accountId = await record.loadAccountId(job) } = job;
  if (accountId === null) return { kind: 'done' };
  throwIfStopping(stopping);
  let nextDelayMs: number | null = null;
  let hasWaited = false;
  limits.beginDraining(subscriptionId);
  const rate = new LaneRate({ record, subscriptionId });
  const pass = new LanePass(dispatcher, { subscriptionId, accountId }, rate);
  try {
    const block = await record.claimProbe(subscriptionId);
    limits.update({ subscriptionId, accountId, ...block });
    rate.update(block.rateLimit);
    if (block.isProbe && !(await pass.probe())) return { kind: 'done' };
    if (block.blockedMs > 0) {
      nextDelayMs = limits.waitMs(subscriptionId);
      return { kind: 'reschedule', delayMs: nextDelayMs };
    }
    let isEmpty = false;
    while (!isEmpty && !stopping.aborted && !pass.isOver()) {
      const capacity = await rate.grant(pass.capacity());
      if (capacity > 0) {
        const { taken } = await pass.claim(capacity);
        isEmpty = taken === 0 && pass.isIdle();
        if (taken < capacity) await pass.waitForAll(POLL_EVERY_MS);
      } else if (!pass.isIdle()) await pass.waitForAny();
      else if (!(await pass.waitForTokens())) break;
      pass.throwFault();
    }
    await pass.waitForAll();
    pass.throwFault();
    // The last delivery of the lane may have taken the last token.
    hasWaited = !isEmpty && rate.isExhausted && (await record.hasDeferred({ subscriptionId, accountId }));
    if (isEmpty || (rate.isExhausted && !hasWaited)) return { kind: 'done' };
    const fullWaitMs = pass.isFull ? FULL_WAIT_MS : 0;
    nextDelayMs = Math.max(limits.waitMs(subscriptionId), fullWaitMs, rate.resumeDelayMs());
    return { kind: 'reschedule', delayMs: nextDelayMs };
  } finally {
    await pass.waitForAll();
    await rate.close(hasWaited);
    limits.endDraining(subscriptionId, nextDelayMs);
  }
}

/** Ensures that a lane has its job after a delivery was deferred. */
export function wakeLane(
  { limits, queue }: Dispatcher,
  { subscriptionId, event }: AttemptableDelivery,
): void {
  const delayMs = limits.laneJobDelayMs(subscriptionId);
  if (delayMs !== null) queue.wakeLane({ subscriptionId, accountId: event.accountId, delayMs });
}
