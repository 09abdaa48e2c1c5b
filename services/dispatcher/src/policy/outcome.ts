import { attemptsLeft, type CycleProgress, type Interpretation, NOT_ACCEPTED } from '@runhook/contract';
import type { EgressResult } from '@runhook/egress';
import { httpDateMs } from './http-date.ts';

/** Consequence of an attempt for its delivery. */
export type Outcome =
  | { kind: 'delivered' }
  | { kind: 'retry'; delayMs: number }
  | { kind: 'failed'; reason: string };

/** Result of an attempt, as the delivery log stores it. */
export interface AttemptReport {
  /** Status of the response; 504 after a timeout, 502 after any other error of the request. */
  httpStatusCode: number;
  error: { code: string; message: string; detail?: string } | null;
}

/**
 * Returns the report of a request. A 2xx without an error is a success: its body ended, was read up to the cap, or was
 * cut off, before the deadline. A redirect is a failure.
 */
export function toAttemptReport({
  response,
  error,
}: Pick<EgressResult, 'response' | 'error'>): AttemptReport {
  if (error) return { httpStatusCode: error.code === 'timeout' ? 504 : 502, error };
  const httpStatusCode = response?.statusCode ?? 502;
  if (httpStatusCode >= 200 && httpStatusCode < 300) return { httpStatusCode, error: null };
  const message = `The endpoint responded with ${httpStatusCode}.`;
  return { httpStatusCode, error: { code: 'unsuccessful_status', message } };
}

/** Returns the report of a response by its meaning for the format of the webhook. */
export function toInterpretedReport(report: AttemptReport, interpretation: Interpretation): AttemptReport {
  const { httpStatusCode } = report;
  if (interpretation.result === 'delivered') return { httpStatusCode, error: null };
  const code = report.error?.code ?? NOT_ACCEPTED;
  return { httpStatusCode, error: { code, message: interpretation.message } };
}

/**
 * @param progress progress of the delivery, this attempt included
 * @param random number from 0 to 1, for the jitter
 * @param interpretation meaning of the response for the format; null if its status decides
 */
export function decideOutcome(
  report: AttemptReport,
  progress: CycleProgress,
  policy: RetryPolicy,
  random: number,
  interpretation: Interpretation | null = null,
): Outcome {
  if (report.error === null) return { kind: 'delivered' };
  if (interpretation?.result === 'failed' || interpretation?.result === 'failed_and_off') {
    const reason = `Not retried, because a retry would fail as well: ${report.error.message}`;
    return { kind: 'failed', reason };
  }
  const delayMs = retryDelayMs(policy, progress, random);
  if (delayMs !== null) return { kind: 'retry', delayMs };
  const attemptCount = attemptsMade(progress);
  const count = attemptCount === 1 ? 'The only attempt' : `All ${attemptCount} attempts`;
  // Attempt numbers continue over redeliveries, but the count is that of the cycle.
  const scope = progress.cycle === 0 ? '' : ' of the redelivery';
  return { kind: 'failed', reason: `${count}${scope} failed. Last: ${report.error.message}` };
}

/** Number of the retries of a delivery, and the waits before them (docs/contract.md#retries). */
export interface RetryPolicy {
  /** Maximum number of retries after the first attempt of a cycle. */
  retriesMax: number;
  /** Wait before the first retry; doubled for each further one. */
  baseDelayMs: number;
}

const JITTER_LOW = 0.8;
const JITTER_HIGH = 1.2;
const RETRY_AFTER_MAX_MS = 3_600_000;

/**
 * Returns the wait before the next attempt, or null when the cycle has no attempt left.
 * @param progress progress of the delivery, the attempt that just failed included
 * @param random number from 0 to 1
 */
export function retryDelayMs(policy: RetryPolicy, progress: CycleProgress, random: number): number | null {
  if (attemptsLeft(policy, progress) === 0) return null;
  const exponentialMs = policy.baseDelayMs * 2 ** (attemptsMade(progress) - 1);
  return Math.round(exponentialMs * (JITTER_LOW + (JITTER_HIGH - JITTER_LOW) * random));
}

/** Returns the number of attempts in the current cycle. */
function attemptsMade({ cycle, attemptCount }: CycleProgress): number {
  return attemptCount - cycle;
}

const HONOURED_STATUS_CODES = new Set([429, 503]);

/**
 * Returns the `Retry-After` of a 429 or 503 (seconds or an HTTP date) in milliseconds, at most an hour; else null. A date
 * is compared with the `Date` of the same response, because the endpoint's clock may be wrong.
 */
export function retryAfterMs(
  statusCode: number,
  headers: Record<string, string>,
  nowMs: number,
): number | null {
  const text = headers['retry-after']?.trim();
  if (!text || !HONOURED_STATUS_CODES.has(statusCode)) return null;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, RETRY_AFTER_MAX_MS);
  const untilMs = httpDateMs(text);
  if (untilMs === null) return null;
  const sinceMs = httpDateMs(headers.date?.trim() ?? '') ?? nowMs;
  return Math.min(Math.max(untilMs - sinceMs, 0), RETRY_AFTER_MAX_MS);
}

const FAULT_DELAY_FIRST_MS = 2_000;
const FAULT_DELAY_MAX_MS = 60_000;

/**
 * Returns the delay of a job after an internal error, such as a rejection by the database or an unreadable secret. The
 * number of retries is not limited.
 * @param starts number of times that the job was started, this one included
 */
export function faultDelayMs(starts: number): number {
  return Math.min(FAULT_DELAY_FIRST_MS * 2 ** (starts - 1), FAULT_DELAY_MAX_MS);
}
