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
