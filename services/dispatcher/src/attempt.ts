import { deliveryHeaders, maskedHeaders, renderPayload } from '@runhook/contract';
import type { Egress } from '@runhook/egress';
import type { AttemptRecord } from './data/record-attempts.ts';
import type { Delivery, Target } from './delivery.ts';
import type { Place } from './endpoint-shares.ts';
import { loggedBody } from './log-text.ts';
import type { InFlight } from './metrics.ts';
import { type Outcome, outcomeOf, reportOf } from './outcome.ts';
import type { RetryPolicy } from './retry-schedule.ts';
import type { Spans } from './spans.ts';

export interface AttemptDependencies {
  egress: Pick<Egress, 'post'>;
  readSecret: (ciphertext: string) => string;
  retryPolicy: RetryPolicy;
  inFlight: InFlight;
  /** Null while no traces are exported: the path is then as short as without them. */
  spans: Spans | null;
}

export interface AttemptResult {
  record: AttemptRecord;
  outcome: Outcome;
}

/** What an attempt needs to know of its delivery. */
export type Attemptable = Pick<
  Delivery,
  'id' | 'day' | 'trigger' | 'cycle' | 'attemptCount' | 'webhookName' | 'subscriptionId' | 'event'
>;

/**
 * One signed request, and what it means. The body is rendered from what was fixed at fan-out, so every attempt sends
 * the same bytes; where it goes and with which secret is as the subscription is now. Records nothing.
 */
export function attempt(
  dependencies: AttemptDependencies,
  delivery: Attemptable,
  target: Target,
): Promise<AttemptResult> {
  const { spans } = dependencies;
  if (!spans) return send(dependencies, delivery, target, null);
  return spans.attempt(delivery, target, (headers) => send(dependencies, delivery, target, headers));
}

/** The place is given back whatever happens, and told whether the endpoint took the delivery. */
export async function attemptAt(
  place: Place,
  dependencies: AttemptDependencies,
  delivery: Attemptable,
  target: Target,
): Promise<AttemptResult> {
  let delivered = false;
  try {
    const result = await attempt(dependencies, delivery, target);
    delivered = result.outcome.kind === 'delivered';
    return result;
  } finally {
    place.end(delivered);
  }
}

async function send(
  { egress, readSecret, retryPolicy, inFlight }: AttemptDependencies,
  delivery: Attemptable,
  target: Target,
  traceHeaders: Record<string, string> | null,
): Promise<AttemptResult> {
  const body = renderPayload(delivery.event, { id: delivery.subscriptionId, name: delivery.webhookName });
  const headers = deliveryHeaders({
    body,
    eventId: delivery.event.eventId,
    hmacSecret: readSecret(target.hmacSecretCiphertext),
    sentAt: new Date(),
  });
  if (traceHeaders) Object.assign(headers, traceHeaders);
  inFlight.attempts += 1;
  const result = await egress.post({ url: target.clientUrl, headers, body });
  inFlight.attempts -= 1;
  const report = reportOf(result);
  const number = delivery.attemptCount + 1;
  const outcome = outcomeOf(report, result.response?.headers ?? {}, number - delivery.cycle, retryPolicy, {
    nowMs: Date.now(),
    random: Math.random(),
  });
  const { response } = result;
  return {
    outcome,
    record: {
      deliveryId: delivery.id,
      day: delivery.day,
      number,
      trigger: delivery.trigger,
      startedAt: result.startedAt,
      durationMs: result.durationMs,
      ...report,
      requestHeaders: maskedHeaders(headers),
      response: response && { headers: response.headers, ...loggedBody(response.body, response.truncated) },
      status: outcome.kind === 'retry' ? 'pending' : outcome.kind,
      reason: outcome.kind === 'failed' ? outcome.reason : null,
      nextDelayMs: outcome.kind === 'retry' ? outcome.delayMs : null,
    },
  };
}
