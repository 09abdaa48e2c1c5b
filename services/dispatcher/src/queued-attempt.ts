import { type AttemptResult, attempt, laneOf } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Delivery } from './policy/next-step.ts';
import { permitsOf } from './policy/permits.ts';
import type { Target } from './target.ts';

/**
 * Attempts a retry or a deferred delivery. Returns null if it gets no permits or no slot: the caller must defer or delay it.
 * @param ignoresBlock true for a manual redelivery and for a probe of a blocked lane
 */
export async function attemptQueued(
  dispatcher: Dispatcher,
  delivery: Delivery,
  target: Target,
  ignoresBlock: boolean,
): Promise<AttemptResult | null> {
  const { accountId } = delivery.event;
  const { queued } = dispatcher.requests.permits;
  const permits = queued.tryAcquire(accountId, permitsOf(delivery.event));
  if (permits === 0) return null;
  try {
    const slot = dispatcher.limits.acquireQueued(laneOf(dispatcher, delivery, target), ignoresBlock);
    return slot && (await attempt(dispatcher, slot, delivery, target));
  } finally {
    queued.release(accountId, permits);
  }
}
