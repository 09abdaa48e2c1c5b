import type { JobRunEvent } from '@runhook/contract';
import { isForbidden } from '@runhook/egress';
import type { AttemptRecord } from '../record/attempts.ts';
import type { DispatcherMetrics } from './metrics.ts';

/** Measures the delay of a first attempt that began at `sentAt`. */
export function measureFirstAttempt(
  { eventToFirstAttempt }: DispatcherMetrics,
  { timestamp }: JobRunEvent,
  sentAt: Date,
): void {
  // The publisher's clock may be ahead.
  eventToFirstAttempt.observe(Math.max(0, sentAt.getTime() - Date.parse(timestamp)) / 1000);
}

/** Measures a committed attempt. */
export function measureAttempt(metrics: DispatcherMetrics, attemptRecord: AttemptRecord): void {
  const { status, error, nextDelayMs } = attemptRecord;
  if (status === 'pending') metrics.attempts.retry.inc();
  else {
    metrics.attempts[status].inc();
    metrics.completed[status].inc();
  }
  metrics.attemptDuration.observe(attemptRecord.durationMs / 1000);
  if (nextDelayMs !== null) metrics.retryWait.observe(nextDelayMs / 1000);
  if (error) {
    metrics.attemptErrors.inc({ code: error.code });
    if (isForbidden(error.code)) metrics.blockedAddresses.inc();
  }
}
