import { deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import type { QueuedDelivery } from '@runhook/queue';
import { type Attemptable, type AttemptDependencies, attempt } from './attempt.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { FanOutRows } from './data/commit-fan-out.ts';
import type { Match, MatchedSubscription } from './data/match-subscriptions.ts';
import type { PendingDelivery } from './data/pending-deliveries.ts';
import type { Target } from './delivery.ts';
import type { EndpointShares } from './endpoint-shares.ts';
import type { DispatcherMetrics } from './metrics.ts';

export interface FanOutDependencies extends AttemptDependencies {
  match: (event: JobRunEvent) => Promise<Match>;
  /** Whether this call claimed the event. */
  commit: (rows: FanOutRows) => Promise<boolean>;
  pendingOf: (eventId: string) => Promise<PendingDelivery[]>;
  enqueue: (delivery: QueuedDelivery) => Promise<void>;
  attemptLog: AttemptLog;
  shares: EndpointShares;
  metrics: DispatcherMetrics;
}

export type FanOutResult =
  | { kind: 'fanned_out'; deliveries: number }
  | { kind: 'duplicate' }
  | { kind: 'resumed'; deliveries: number }
  | { kind: 'unknown_account' };

/**
 * Turns an event into deliveries and makes their first attempts: the event and one row per matching subscription
 * are committed first, then each delivery is attempted in place or, beyond its endpoint's share, handed to the
 * overflow queue. When this resolves, every delivery is attempted and recorded, or queued: the job may go.
 * @param interrupted this job ran before and did not end, so deliveries it committed may be left undone
 */
export async function fanOut(
  dependencies: FanOutDependencies,
  event: JobRunEvent,
  interrupted: boolean,
): Promise<FanOutResult> {
  const { match, commit } = dependencies;
  const subscriptions = await match(event);
  if (!subscriptions) return { kind: 'unknown_account' };
  const planned = subscriptions.map((subscription) => plan(event, subscription));
  const deliveries = planned.map(({ delivery }) => ({
    id: delivery.id,
    subscriptionId: delivery.subscriptionId,
    webhookName: delivery.webhookName,
  }));
  const claimed = await commit({ event, deliveries });
  if (claimed) {
    await Promise.all(planned.map(({ delivery, target }) => deliverFirst(dependencies, delivery, target)));
    return { kind: 'fanned_out', deliveries: planned.length };
  }
  // Another job with this event's id owns what is pending, and a second request must not come from here.
  if (!interrupted) return { kind: 'duplicate' };
  return { kind: 'resumed', deliveries: await resume(dependencies, event.eventId) };
}

function plan(
  event: JobRunEvent,
  subscription: MatchedSubscription,
): { delivery: Attemptable; target: Target } {
  return {
    target: subscription.target,
    delivery: {
      id: deliveryIdFor(event.eventId, subscription.id),
      day: idDay('event', event.eventId),
      trigger: 'automatic',
      cycle: 0,
      attemptCount: 0,
      webhookName: subscription.name,
      subscriptionId: subscription.id,
      event,
    },
  };
}

async function deliverFirst(
  dependencies: FanOutDependencies,
  delivery: Attemptable,
  target: Target,
): Promise<void> {
  const { shares, enqueue, attemptLog, retryPolicy, metrics } = dependencies;
  const endpoint = endpointOf(target.clientUrl);
  const attemptsPerCycle = retryPolicy.retriesMax + 1;
  if (!shares.tryAcquire(endpoint)) {
    metrics.deliveries.inc({ route: 'overflow' });
    return await enqueue({ deliveryId: delivery.id, cycle: 0, delayMs: 0, attemptsLeft: attemptsPerCycle });
  }
  metrics.deliveries.inc({ route: 'in_place' });
  const { record, outcome } = await attempt(dependencies, delivery, target).finally(() =>
    shares.release(endpoint),
  );
  shares.report(endpoint, outcome.kind === 'delivered');
  await attemptLog.record(delivery, record);
  if (outcome.kind === 'retry') {
    const { delayMs } = outcome;
    await enqueue({ deliveryId: delivery.id, cycle: 0, delayMs, attemptsLeft: attemptsPerCycle - 1 });
  }
}

/** Queues what is pending; what is queued already stays as it is. */
async function resume(
  { pendingOf, enqueue, retryPolicy }: FanOutDependencies,
  eventId: string,
): Promise<number> {
  const pending = await pendingOf(eventId);
  await Promise.all(
    pending.map(({ id, cycle, attemptCount, delayMs }) => {
      const attemptsLeft = retryPolicy.retriesMax + 1 - (attemptCount - cycle);
      return enqueue({ deliveryId: id, cycle, delayMs, attemptsLeft });
    }),
  );
  return pending.length;
}

/** Subscriptions that post to the same server share its fate. */
export function endpointOf(clientUrl: string): string {
  return URL.canParse(clientUrl) ? new URL(clientUrl).origin : clientUrl;
}
