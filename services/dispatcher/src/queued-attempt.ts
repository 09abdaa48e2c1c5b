import { type AttemptResult, attempt, laneOf } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LaneRate } from './lane-rate.ts';
import type { Delivery } from './policy/next-step.ts';
import { permitsOf } from './policy/permits.ts';
import type { Target } from './target.ts';

/** Null if it got no permits or no slot, `no_token` if its rate limit permits no request: the caller must defer or delay it. */
export type QueuedResult = AttemptResult | 'no_token' | null;

export interface QueuedOptions {
  rate: LaneRate;
  /** True for a manual redelivery and for a probe of a blocked lane. */
  ignoresBlock: boolean;
}

/** Attempts a retry or a deferred delivery. */
export async function attemptQueued(
  dispatcher: Dispatcher,
  delivery: Delivery,
  target: Target,
  { rate, ignoresBlock }: QueuedOptions,
): Promise<QueuedResult> {
  const { accountId } = delivery.event;
  const { queued } = dispatcher.requests.permits;
  const permits = queued.tryAcquire(accountId, permitsOf(delivery.event));
  if (permits === 0) return null;
  try {
    const token = rate.take();
    if (token === null) return 'no_token';
    const slot = dispatcher.limits.acquireQueued(laneOf(dispatcher, delivery, target), ignoresBlock);
    if (slot !== null) return await attempt(dispatcher, slot, delivery, target);
    rate.putBack(token);
    return null;
  } finally {
    queued.release(accountId, permits);
  }
}
