import type { EgressResult } from '@runhook/egress';
import { type RetryPolicy, retryAfterMs, retryDelayMs } from './retry-schedule.ts';

/** What one attempt means for its delivery. */
export type Outcome =
  | { kind: 'delivered' }
  | { kind: 'retry'; delayMs: number }
  | { kind: 'failed'; reason: string };

/** How one attempt ended, as the log has it. */
export interface AttemptReport {
  /** The endpoint's own status; 504 when it did not answer in time, 502 when it could not be reached. */
  httpStatusCode: number;
  error: { code: string; message: string } | null;
}

/** Success is a 2xx that came whole, or up to the cap, within the deadline. A redirect is a failure. */
export function reportOf({ response, error }: Pick<EgressResult, 'response' | 'error'>): AttemptReport {
  if (error) return { httpStatusCode: error.code === 'timeout' ? 504 : 502, error };
  const httpStatusCode = response?.statusCode ?? 502;
  if (httpStatusCode >= 200 && httpStatusCode < 300) return { httpStatusCode, error: null };
  const message = `The endpoint answered ${httpStatusCode}.`;
  return { httpStatusCode, error: { code: 'unsuccessful_status', message } };
}

/**
 * @param attemptsMade attempts of this cycle, this one included
 * @param random from 0 to 1, for the jitter
 */
export function outcomeOf(
  report: AttemptReport,
  responseHeaders: Record<string, string>,
  attemptsMade: number,
  policy: RetryPolicy,
  now: { nowMs: number; random: number },
): Outcome {
  if (report.error === null) return { kind: 'delivered' };
  const askedMs = retryAfterMs(report.httpStatusCode, responseHeaders, now.nowMs);
  const delayMs = retryDelayMs(policy, attemptsMade, askedMs, now.random);
  if (delayMs !== null) return { kind: 'retry', delayMs };
  const count = attemptsMade === 1 ? 'The only attempt' : `All ${attemptsMade} attempts`;
  return { kind: 'failed', reason: `${count} failed. Last: ${report.error.message}` };
}
