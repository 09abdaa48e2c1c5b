import type { DeliveryJob } from '@runhook/contract';
import { type AttemptDependencies, type AttemptLog, attemptAt } from './attempt.ts';
import type { EndpointShares } from './policy/endpoint-limits.ts';
import { type Delivery, turnOf } from './policy/next-step.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';

export interface DeliverDependencies extends AttemptDependencies {
  load: (deliveryId: string) => Promise<Delivery | null>;
  cancel: (cancellation: { deliveryId: string; reason: string }) => Promise<void>;
  attemptLog: AttemptLog;
  shares: EndpointShares;
  metrics: DispatcherMetrics;
}

/**
 * What the queue job does next: it is done, it waits for its delivery's next attempt, or it comes again without one
 * because its endpoint has enough in flight.
 */
export type DeliverResult = { kind: 'done' } | { kind: 'again' | 'put_off'; delayMs: number };

/** One turn of a queued delivery: a retry, the first attempt of one beyond its endpoint's share, or a redelivery. */
export async function deliver(dependencies: DeliverDependencies, job: DeliveryJob): Promise<DeliverResult> {
  const { load, cancel, attemptLog, shares, metrics } = dependencies;
  const delivery = await load(job.deliveryId);
  const turn = turnOf(delivery, job.cycle, Date.now());
  if (!delivery || turn.kind === 'skip') return { kind: 'done' };
  if (turn.kind === 'wait') return { kind: 'again', delayMs: turn.delayMs };
  if (turn.kind === 'cancel') {
    await cancel({ deliveryId: delivery.id, reason: turn.reason });
    metrics.completed.cancelled.inc();
    return { kind: 'done' };
  }
  const place = shares.takeQueued(turn.target.endpoint);
  if ('comeAgainInMs' in place) return { kind: 'put_off', delayMs: place.comeAgainInMs };
  const { record, outcome } = await attemptAt(place, dependencies, delivery, turn.target);
  await attemptLog.record(delivery, record);
  return outcome.kind === 'retry' ? { kind: 'again', delayMs: outcome.delayMs } : { kind: 'done' };
}
