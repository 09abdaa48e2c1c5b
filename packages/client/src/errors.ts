/** One field of a request, and what is wrong with it. */
export interface FieldProblem {
  field: string;
  message: string;
}

/** What the API answered instead of what was asked for (docs/contract.md#errors), or that it did not answer. */
export class RunhookError extends Error {
  override readonly name = 'RunhookError';
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** A sentence for whoever made the call: `user_message`. */
  readonly userMessage: string;
  /** More, for whoever wrote it; empty when there is nothing to add. */
  readonly developerMessage: string;
  /** Of a 400, in order; else empty. */
  readonly errors: readonly FieldProblem[];
  /** How long to wait, of a 429 or 503. */
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

  /** What is wrong with a field of the request; undefined when nothing is. */
  problemOf(field: string): string | undefined {
    return this.errors.find((problem) => problem.field === field)?.message;
  }
}

interface Refusal {
  status?: { user_message?: string; developer_message?: string; errors?: FieldProblem[] };
}

/** Reads what the service says; what stands before it (a proxy, a login page) has no envelope. */
export async function refusalOf(response: Response): Promise<RunhookError> {
  const answer: unknown = await response.json().catch(() => null);
  const { status } = (answer ?? {}) as Refusal;
  const retryAfter = Number.parseInt(response.headers.get('retry-after') ?? '', 10);
  return new RunhookError(
    response.status,
    status?.user_message ?? `The server answered ${response.status}.`,
    {
      developerMessage: status?.developer_message,
      errors: status?.errors,
      retryAfterSeconds: Number.isNaN(retryAfter) ? null : retryAfter,
    },
  );
}

/** @param error what `fetch` threw */
export function noAnswer(error: unknown): RunhookError {
  const cause = (error as { cause?: { code?: unknown } }).cause ?? {};
  const code = typeof cause.code === 'string' ? ` (${cause.code})` : '';
  const isLate = error instanceof DOMException && error.name === 'TimeoutError';
  const words = isLate ? 'The server did not answer in time.' : `The server cannot be reached${code}.`;
  return new RunhookError(0, words, { cause: error });
}
