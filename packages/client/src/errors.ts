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
  /** Time to wait after a 429 or 503. */
  readonly retryAfterSeconds: number | null;

  constructor(
    status: number,
    userMessage: string,
    more: {
      developerMessage?: string | undefined;
      errors?: readonly FieldProblem[] | undefined;
      retryAfterSeconds?: number | null;
      cause?: unknown;
    } = {},
  ) {
    super(userMessage, more.cause === undefined ? undefined : { cause: more.cause });
    this.status = status;
    this.userMessage = userMessage;
    this.developerMessage = more.developerMessage ?? '';
    this.errors = more.errors ?? [];
    this.retryAfterSeconds = more.retryAfterSeconds ?? null;
  }

  /** Returns the problem of a field of the request, or undefined. */
  problemOf(field: string): string | undefined {
    return this.errors.find((problem) => problem.field === field)?.message;
  }
}

interface Refusal {
  status?: { user_message?: string; developer_message?: string; errors?: FieldProblem[] };
}

/** Reads the service's error; a response of a proxy or login page has no envelope. */
export async function refusalOf(response: Response): Promise<RunhookError> {
  const answer: unknown = await response.json().catch(() => null);
  const { status } = (answer ?? {}) as Refusal;
  const retryAfter = Number.parseInt(response.headers.get('retry-after') ?? '', 10);
  return new RunhookError(
    response.status,
    status?.user_message ?? `The server responded with ${response.status}.`,
    {
      developerMessage: status?.developer_message,
      errors: status?.errors,
      retryAfterSeconds: Number.isNaN(retryAfter) ? null : retryAfter,
    },
  );
}

/** @param error thrown by `fetch` */
export function noAnswer(error: unknown): RunhookError {
  const cause = (error as { cause?: { code?: unknown } }).cause ?? {};
  const code = typeof cause.code === 'string' ? ` (${cause.code})` : '';
  const isLate = error instanceof DOMException && error.name === 'TimeoutError';
  const words = isLate ? 'The server did not respond in time.' : `The server cannot be reached${code}.`;
  return new RunhookError(0, words, { cause: error });
}
