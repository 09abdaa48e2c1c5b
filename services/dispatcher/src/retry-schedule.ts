/** Waits between the attempts of a delivery (DESIGN, sections 4 and 7). */
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
 * @param attemptsMade attempts of this cycle so far, the one that just failed included
 * @param retryAfterMs what the endpoint asked for; it lengthens the wait, up to an hour, and never shortens it
 * @param random from 0 to 1
 */
export function retryDelayMs(
  policy: RetryPolicy,
  attemptsMade: number,
  retryAfterMs: number | null,
  random: number,
): number | null {
  if (attemptsMade > policy.retriesMax) return null;
  const exponentialMs = policy.baseDelayMs * 2 ** (attemptsMade - 1);
  const jitteredMs = Math.round(exponentialMs * (JITTER_LOW + (JITTER_HIGH - JITTER_LOW) * random));
  return Math.max(jitteredMs, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}

const HONOURED_STATUS_CODES = new Set([429, 503]);

/** `Retry-After` of a 429 or 503, in milliseconds from now: seconds or an HTTP date. Null when there is none. */
export function retryAfterMs(
  statusCode: number,
  headers: Record<string, string>,
  nowMs: number,
): number | null {
  const text = headers['retry-after']?.trim();
  if (!text || !HONOURED_STATUS_CODES.has(statusCode)) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const timeMs = text.endsWith('GMT') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(timeMs) ? null : Math.max(timeMs - nowMs, 0);
}
