import { formatWait } from '../wording/time.ts';

/** Error of an API call: no response, or one that is not a 2xx with JSON. */
export class ApiError extends Error {
  /** The HTTP status; 0 when no response arrived. */
  readonly code: number;
  /** Problems by field of the request body or by parameter; empty if the response names none. */
  readonly fieldProblems: Readonly<Record<string, string>>;
  /** Seconds to wait before a retry, from `Retry-After`; null without it. */
  readonly retryAfterSeconds: number | null;

  constructor(
    code: number,
    userMessage: string,
    more: { fieldProblems?: Record<string, string>; retryAfterSeconds?: number | null } = {},
  ) {
    super(userMessage);
    this.name = 'ApiError';
    this.code = code;
    this.fieldProblems = more.fieldProblems ?? {};
    this.retryAfterSeconds = more.retryAfterSeconds ?? null;
  }
}

/** Returns the message to show: the error's, or what to do after a 401, 429, 500, 503 or an unexpected error. */
export function describeProblem(error: unknown): string {
  if (!(error instanceof ApiError)) return 'An unexpected error occurred. Try again.';
  switch (error.code) {
    case 401:
      return 'Your session has ended. Sign in again.';
    case 429:
      return `Too many requests. Try again ${describeRetryAfter(error.retryAfterSeconds)}.`;
    case 503:
      return `Runhook is currently unavailable. Try again ${describeRetryAfter(error.retryAfterSeconds)}.`;
    case 500:
      return 'Runhook could not process this request. Try again; if it fails again, contact your administrator.';
    default:
      return error.message;
  }
}

function describeRetryAfter(seconds: number | null): string {
  return seconds === null ? 'in a moment' : `in ${formatWait(Math.max(1, seconds))}`;
}
