import type { Logger } from '@runhook/runtime';
import type { Attemptable } from './attempt.ts';
import type { AttemptRecord } from './data/record-attempts.ts';
import type { SubscriptionStatus } from './data/update-subscription-statuses.ts';
import type { DispatcherMetrics } from './metrics.ts';

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
