import { deliveryHeaders, maskedHeaders, renderPayload } from '@runhook/contract';
import type { Egress } from '@runhook/egress';
import type { Logger } from '@runhook/runtime';
import type { Place } from './policy/endpoint-limits.ts';
import type { Delivery, Target } from './policy/next-step.ts';
import { type Outcome, outcomeOf, type RetryPolicy, reportOf } from './policy/outcome.ts';
import type { AttemptRecord, SubscriptionStatus } from './record/attempts.ts';
import type { DispatcherMetrics, InFlight } from './telemetry/metrics.ts';
import type { Spans } from './telemetry/spans.ts';

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
      timings: result.timings,
      status: outcome.kind === 'retry' ? 'pending' : outcome.kind,
      reason: outcome.kind === 'failed' ? outcome.reason : null,
      nextDelayMs: outcome.kind === 'retry' ? outcome.delayMs : null,
    },
  };
}

/** Where an attempt leaves its trace: the database's log, the subscription's status, metrics, and one wide line. */
export interface AttemptLog {
  /** Resolves once the attempt is committed. */
  record(delivery: Attemptable, record: AttemptRecord): Promise<void>;
}

export function createAttemptLog(dependencies: {
  commit: (record: AttemptRecord) => Promise<void>;
  noteStatus: (status: SubscriptionStatus) => void;
  metrics: DispatcherMetrics;
  logger: Logger;
}): AttemptLog {
  const { commit, noteStatus, metrics, logger } = dependencies;
  return {
    async record(delivery, record) {
      await commit(record);
      noteStatus({
        subscriptionId: delivery.subscriptionId,
        dispatchedAt: record.startedAt,
        httpStatusCode: record.httpStatusCode,
      });
      measure(metrics, delivery, record);
      logger.info(
        {
          deliveryId: record.deliveryId,
          eventId: delivery.event.eventId,
          eventType: delivery.event.eventType,
          subscriptionId: delivery.subscriptionId,
          accountId: delivery.event.accountId,
          attempt: record.number,
          trigger: record.trigger,
          status: record.status,
          httpStatusCode: record.httpStatusCode,
          errorCode: record.error?.code,
          durationMs: record.durationMs,
          nextDelayMs: record.nextDelayMs ?? undefined,
        },
        'attempt',
      );
    },
  };
}

function measure(metrics: DispatcherMetrics, delivery: Attemptable, record: AttemptRecord): void {
  const { status, error, nextDelayMs } = record;
  if (status === 'pending') metrics.attempts.retry.inc();
  else {
    metrics.attempts[status].inc();
    metrics.completed[status].inc();
  }
  metrics.attemptDuration.observe(record.durationMs / 1000);
  if (record.number === 1) {
    const waitedMs = record.startedAt.getTime() - Date.parse(delivery.event.timestamp);
    // A publisher's clock may be ahead of ours.
    metrics.eventToFirstAttempt.observe(Math.max(0, waitedMs) / 1000);
  }
  if (nextDelayMs !== null) metrics.retryWait.observe(nextDelayMs / 1000);
  if (error) {
    metrics.attemptErrors.inc({ code: error.code });
    if (error.code === 'address_forbidden') metrics.blockedAddresses.inc();
  }
}

const LOGGED_BYTES_MAX = 16_384;

/**
 * The part of a response body that the log keeps: up to 16 KiB as UTF-8, with U+FFFD for what is not UTF-8 and for
 * NUL, which PostgreSQL text cannot hold.
 */
export function loggedBody(body: Buffer, cutBefore: boolean): { body: string; truncated: boolean } {
  const kept = body.subarray(0, LOGGED_BYTES_MAX);
  return {
    body: kept.toString('utf8').replaceAll('\0', '\uFFFD'),
    truncated: cutBefore || body.length > LOGGED_BYTES_MAX,
  };
}
