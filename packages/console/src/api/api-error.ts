import { waitWords } from '../words/time.ts';

/** What the API answered instead of what was asked for. */
export class ApiError extends Error {
  /** The HTTP status; 0 when no answer came. */
  readonly code: number;
  /** By field of the request body or parameter; empty when the refusal concerns none. */
  readonly fieldProblems: Readonly<Record<string, string>>;
  /** Seconds to wait, of a 429 or 503. */
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

/** What went wrong, for people: the server's own words where it has some, and what can be done where it has none. */
export function problemWords(error: unknown): string {
  if (!(error instanceof ApiError)) return 'An unexpected error occurred. Try again.';
  switch (error.code) {
    case 401:
      return 'Your session has ended. Sign in again.';
    case 429:
      return `Too many requests. Try again ${afterWords(error.retryAfterSeconds)}.`;
    case 503:
      return `Runhook is currently unavailable. Try again ${afterWords(error.retryAfterSeconds)}.`;
    case 500:
      return 'Runhook could not process this request. Try again; if it fails again, contact your administrator.';
    default:
      return error.message;
  }
}

function afterWords(seconds: number | null): string {
  return seconds === null ? 'in a moment' : `in ${waitWords(Math.max(1, seconds))}`;
}
