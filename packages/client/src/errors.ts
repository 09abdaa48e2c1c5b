/** A field of a request with its problem. */
export interface FieldProblem {
  field: string;
  message: string;
}

/** The error response of the API (docs/contract.md#errors), or the absence of a response. */
export class RunhookError extends Error {
  override readonly name = 'RunhookError';
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** A sentence for users: `user_message`. */
  readonly userMessage: string;
  /** Details for developers; may be empty. */
  readonly developerMessage: string;
  /** The problems of a 400 response, in order; otherwise empty. */
  readonly errors: readonly FieldProblem[];
  /** The `Retry-After` of a response such as a 429 or 503. */
  readonly retryAfterSeconds: number | null;
  /** The `data` of the response, as of a 410 of the feed; null in most. */
  readonly data: unknown;

  constructor(
    status: number,
    userMessage: string,
    details: {
      developerMessage?: string | undefined;
      errors?: readonly FieldProblem[] | undefined;
      retryAfterSeconds?: number | null;
      data?: unknown;
      cause?: unknown;
    } = {},
  ) {
    super(userMessage, details.cause === undefined ? undefined : { cause: details.cause });
    this.status = status;
    this.userMessage = userMessage;
    this.developerMessage = details.developerMessage ?? '';
    this.errors = details.errors ?? [];
    this.retryAfterSeconds = details.retryAfterSeconds ?? null;
    this.data = details.data ?? null;
  }

  /** Returns the problem of a field of the request, or undefined. */
  problemOf(field: string): string | undefined {
    return this.errors.find((problem) => problem.field === field)?.message;
  }
}

interface FailureEnvelope {
  data?: unknown;
  status?: { user_message?: string; developer_message?: string; errors?: FieldProblem[] };
}

/** Reads the service's error; a response of a proxy or login page has no envelope. */
export async function parseFailure(response: Response): Promise<RunhookError> {
  const body: unknown = await response.json().catch(() => null);
  const { status, data } = (body ?? {}) as FailureEnvelope;
  const retryAfter = Number.parseInt(response.headers.get('retry-after') ?? '', 10);
  return new RunhookError(
    response.status,
    status?.user_message ?? `The server responded with ${response.status}.`,
    {
      developerMessage: status?.developer_message,
      errors: status?.errors,
      data,
      retryAfterSeconds: Number.isNaN(retryAfter) ? null : retryAfter,
    },
  );
}

/** @param error thrown by `fetch` */
export function createConnectionError(error: unknown): RunhookError {
  const cause = (error as { cause?: { code?: unknown } }).cause ?? {};
  const code = typeof cause.code === 'string' ? ` (${cause.code})` : '';
  const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
  const message = isTimeout ? 'The server did not respond in time.' : `The server cannot be reached${code}.`;
  return new RunhookError(0, message, { cause: error });
}
