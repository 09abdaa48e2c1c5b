import { attemptsLeft, type CycleProgress } from '@runhook/contract';
import type { EgressResult } from '@runhook/egress';

/** What one attempt means for its delivery. */
export type Outcome =
  | { kind: 'delivered' }
  | { kind: 'retry'; delayMs: number }
  | { kind: 'failed'; reason: string };

/** How one attempt ended, as the log has it. */
export interface AttemptReport {
  /** The endpoint's own status; 504 when it did not answer in time, 502 when it could not be reached. */
  httpStatusCode: number;
  error: { code: string; message: string; detail?: string } | null;
}

/**
 * A 2xx without an error is a success: its body ended, was read up to the cap, or was cut off, before the deadline. A redirect is a
 * failure.
 */
export function reportOf({ response, error }: Pick<EgressResult, 'response' | 'error'>): AttemptReport {
  if (error) return { httpStatusCode: error.code === 'timeout' ? 504 : 502, error };
  const httpStatusCode = response?.statusCode ?? 502;
  if (httpStatusCode >= 200 && httpStatusCode < 300) return { httpStatusCode, error: null };
  const message = `The endpoint answered ${httpStatusCode}.`;
  return { httpStatusCode, error: { code: 'unsuccessful_status', message } };
}

/**
 * @param progress of the delivery, this attempt included
 * @param random from 0 to 1, for the jitter
 */
export function outcomeOf(
  report: AttemptReport,
  progress: CycleProgress,
  policy: RetryPolicy,
  random: number,
): Outcome {
  if (report.error === null) return { kind: 'delivered' };
  const delayMs = retryDelayMs(policy, progress, random);
  if (delayMs !== null) return { kind: 'retry', delayMs };
  const made = attemptsMade(progress);
  const count = made === 1 ? 'The only attempt' : `All ${made} attempts`;
  // The numbers of attempts are counted on over redeliveries.
  const ofWhat = progress.cycle === 0 ? '' : ' of the redelivery';
  return { kind: 'failed', reason: `${count}${ofWhat} failed. Last: ${report.error.message}` };
}

/** Waits between the attempts of a delivery (docs/contract.md#retries). */
export interface RetryPolicy {
  /** Retries after the first attempt of a cycle. */
  retriesMax: number;
  /** The wait before the first retry; each next one doubles it. */
  baseDelayMs: number;
}

const JITTER_LOW = 0.8;
const JITTER_HIGH = 1.2;
const RETRY_AFTER_MAX_MS = 3_600_000;

/**
 * The wait before the next attempt, or null when the cycle has no attempt left.
 * @param progress of the delivery, the attempt that just failed included
 * @param random from 0 to 1
 */
export function retryDelayMs(policy: RetryPolicy, progress: CycleProgress, random: number): number | null {
  if (attemptsLeft(policy, progress) === 0) return null;
  const exponentialMs = policy.baseDelayMs * 2 ** (attemptsMade(progress) - 1);
  return Math.round(exponentialMs * (JITTER_LOW + (JITTER_HIGH - JITTER_LOW) * random));
}

/** In the cycle that the delivery is in. */
function attemptsMade({ cycle, attemptCount }: CycleProgress): number {
  return attemptCount - cycle;
}

const HONOURED_STATUS_CODES = new Set([429, 503]);

/** Returns `Retry-After` of a 429 or 503 in milliseconds from now, an hour at most: seconds or an HTTP date; null without one. */
export function retryAfterMs(
  statusCode: number,
  headers: Record<string, string>,
  nowMs: number,
): number | null {
  const text = headers['retry-after']?.trim();
  if (!text || !HONOURED_STATUS_CODES.has(statusCode)) return null;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, RETRY_AFTER_MAX_MS);
  const timeMs = text.endsWith('GMT') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(timeMs) ? null : Math.min(Math.max(timeMs - nowMs, 0), RETRY_AFTER_MAX_MS);
}

const FAULT_DELAY_FIRST_MS = 2_000;
const FAULT_DELAY_MAX_MS = 60_000;

/**
 * How long a job waits after a fault of our own, a database that refuses or a secret that cannot be read. There is no
 * last time: it goes on until the fault has ended.
 * @param starts how often the job was begun, this time included
 */
export function faultDelayMs(starts: number): number {
  return Math.min(FAULT_DELAY_FIRST_MS * 2 ** (starts - 1), FAULT_DELAY_MAX_MS);
}
