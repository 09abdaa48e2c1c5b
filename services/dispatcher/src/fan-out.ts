import { attemptsLeft, deliveryIdFor, idDay, type JobRunEvent } from '@runhook/contract';
import type { QueuedDelivery } from '@runhook/queue';
import { type Attemptable, type AttemptDependencies, type AttemptLog, attemptAt } from './attempt.ts';
import type { EndpointShares } from './policy/endpoint-limits.ts';
import { type KnownSubscription, matching, type Target } from './policy/next-step.ts';

import type { Room } from './policy/semaphore.ts';
import type { SubscriptionCache } from './record/accounts.ts';
import type { FanOutCommit, FanOutRows } from './record/commit-fan-out.ts';
import type { PendingDelivery } from './record/deliveries.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';

export interface FanOutDependencies extends AttemptDependencies {
  accounts: SubscriptionCache;
  commit: (rows: FanOutRows) => Promise<FanOutCommit>;
  pendingOf: (eventId: string) => Promise<PendingDelivery[]>;
  enqueue: (delivery: QueuedDelivery) => Promise<void>;
  attemptLog: AttemptLog;
  shares: EndpointShares;
  room: Room;
  metrics: DispatcherMetrics;
}

/**
 * How long a plan may wait for its attempt. The commit found the subscription as it was planned with; what waits
 * longer goes to the overflow queue, where it is read again when its turn comes.
 */
const FRESH_MS = 500;

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
  const { spans, metrics } = dependencies;
  const committed = await commitPlan(dependencies, event);
  if (!committed) return { kind: 'unknown_account' };
  const { planned, plannedAtMs, result } = committed;
  if (result === 'claimed') {
    metrics.fanOutSize.observe(planned.length);
    await Promise.all(
      planned.map(({ delivery, target }) =>
        spans
          ? spans.first(delivery, () => deliverFirst(dependencies, delivery, target, plannedAtMs))
          : deliverFirst(dependencies, delivery, target, plannedAtMs),
      ),
    );
    return { kind: 'fanned_out', deliveries: planned.length };
  }
  // Another job with this event's id owns what is pending, and a second request must not come from here.
  if (!interrupted) return { kind: 'duplicate' };
  return { kind: 'resumed', deliveries: await resume(dependencies, event.eventId) };
}

interface Planned {
  delivery: Attemptable;
  target: Target;
}

/** Plans with the subscriptions as they are known, and again whenever the commit says that they are others by now. */
async function commitPlan(
  { accounts, commit }: FanOutDependencies,
  event: JobRunEvent,
): Promise<{ planned: Planned[]; plannedAtMs: number; result: FanOutCommit } | null> {
  while (true) {
    const account = await accounts.of(event.accountId);
    if (!account) return null;
    const plannedAtMs = performance.now();
    const day = idDay('event', event.eventId);
    const planned = matching(account, event).map((subscription) => plan(event, day, subscription));
    const deliveries = planned.map(({ delivery }) => ({
      id: delivery.id,
      subscriptionId: delivery.subscriptionId,
      webhookName: delivery.webhookName,
    }));
    const result = await commit({ event, fingerprint: account.fingerprint, deliveries });
    if (result !== 'outdated') return { planned, plannedAtMs, result };
    accounts.forget(account);
  }
}

function plan(event: JobRunEvent, day: string, { id, name, target }: KnownSubscription): Planned {
  return {
    target,
    delivery: {
      id: deliveryIdFor(event.eventId, id),
      day,
      trigger: 'automatic',
      cycle: 0,
      attemptCount: 0,
      webhookName: name,
      subscriptionId: id,
      event,
    },
  };
}

async function deliverFirst(
  dependencies: FanOutDependencies,
  delivery: Attemptable,
  target: Target,
  plannedAtMs: number,
): Promise<void> {
  const { shares, room, attemptLog, retryPolicy, metrics } = dependencies;
  const { endpoint } = target;
  await room.enter();
  const isFresh = performance.now() - plannedAtMs < FRESH_MS;
  const place = isFresh ? shares.takeInPlace(endpoint) : null;
  if (!place) {
    room.leave();
    metrics.deliveries.overflow.inc();
    const queued = {
      deliveryId: delivery.id,
      cycle: 0,
      delayMs: 0,
      attemptsLeft: attemptsLeft(retryPolicy, delivery),
    };
    return await enqueueInTrace(dependencies, queued);
  }
  metrics.deliveries.in_place.inc();
  const { record, outcome } = await attemptAt(place, dependencies, delivery, target).finally(room.leave);
  await attemptLog.record(delivery, record);
  if (outcome.kind === 'retry') {
    const { delayMs } = outcome;
    const left = attemptsLeft(retryPolicy, { cycle: 0, attemptCount: 1 });
    await enqueueInTrace(dependencies, { deliveryId: delivery.id, cycle: 0, delayMs, attemptsLeft: left });
  }
}

/** Batches are made of deliveries of many traces, so each takes its own along. */
function enqueueInTrace({ enqueue, spans }: FanOutDependencies, queued: QueuedDelivery): Promise<void> {
  if (spans) queued.traceContext = spans.carried();
  return enqueue(queued);
}

/** Queues what is pending; what is queued already stays as it is. */
async function resume(dependencies: FanOutDependencies, eventId: string): Promise<number> {
  const { pendingOf, retryPolicy } = dependencies;
  const pending = await pendingOf(eventId);
  await Promise.all(
    pending.map(({ id, cycle, attemptCount, delayMs }) => {
      const left = attemptsLeft(retryPolicy, { cycle, attemptCount });
      return enqueueInTrace(dependencies, { deliveryId: id, cycle, delayMs, attemptsLeft: left });
    }),
  );
  return pending.length;
}
