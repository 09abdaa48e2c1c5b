import { deliveryHeaders, maskedHeaders, renderPayload } from '@runhook/contract';
import type { Egress } from '@runhook/egress';
import type { AttemptRecord } from './data/record-attempts.ts';
import type { Delivery, Target } from './delivery.ts';
import { loggedBody } from './log-text.ts';
import { type Outcome, outcomeOf, reportOf } from './outcome.ts';
import type { RetryPolicy } from './retry-schedule.ts';

export interface AttemptDependencies {
  egress: Pick<Egress, 'post'>;
  readSecret: (ciphertext: string) => string;
  retryPolicy: RetryPolicy;
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
export async function attempt(
  { egress, readSecret, retryPolicy }: AttemptDependencies,
  delivery: Attemptable,
  target: Target,
): Promise<{ record: AttemptRecord; outcome: Outcome }> {
  const body = renderPayload(delivery.event, { id: delivery.subscriptionId, name: delivery.webhookName });
  const headers = deliveryHeaders({
    body,
    eventId: delivery.event.eventId,
    hmacSecret: readSecret(target.hmacSecretCiphertext),
    sentAt: new Date(),
  });
  const result = await egress.post({ url: target.clientUrl, headers, body: Buffer.from(body) });
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
