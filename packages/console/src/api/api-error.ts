import { formatWait } from '../wording/time.ts';

/** Error of an API call: a response that is not a 2xx, or no response. */
export class ApiError extends Error {
  /** The HTTP status; 0 when no response arrived. */
  readonly code: number;
  /** Problems by field of the request body or by parameter; empty when the error concerns no field. */
  readonly fieldProblems: Readonly<Record<string, string>>;
  /** Seconds to wait before a retry, from a 429 or 503; null otherwise. */
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

/** Returns the message to show: the server's, or, for errors that it cannot explain, what the user can do. */
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
