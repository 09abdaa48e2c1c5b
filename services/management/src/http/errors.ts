import type { Problem } from '@runhook/contract';

/** An error that is reported to the caller. `mapErrors` converts all others, unknown ones to a 500. */
export class ApiError extends Error {
  readonly statusCode: number;
  /** For logs and code; callers see `userMessage`. */
  readonly code: string;
  readonly userMessage: string;
  readonly developerMessage: string;
  readonly headers: Record<string, string>;
  /** Set for a 400: one entry for each invalid field. */
  readonly problems: readonly Problem[] | undefined;
  /** Value of `data` in the response. */
  readonly data: object | null;

  constructor(
    statusCode: number,
    code: string,
    userMessage: string,
    details: {
      developerMessage?: string;
      headers?: Record<string, string>;
      problems?: readonly Problem[];
      data?: object;
    } = {},
  ) {
    super(userMessage);
    this.statusCode = statusCode;
    this.code = code;
    this.userMessage = userMessage;
    this.developerMessage = details.developerMessage ?? '';
    this.headers = details.headers ?? {};
    this.problems = details.problems;
    this.data = details.data ?? null;
  }
}

/** 400. `errors` has an entry for every invalid field, `developer_message` one line for each: `field: message`. */
export class InvalidRequestError extends ApiError {
  constructor(problems: readonly Problem[]) {
    const fieldProblems = problemsByField(problems);
    super(400, 'invalid_request', `Invalid request: ${problems.map(({ message }) => message).join('; ')}.`, {
      developerMessage: fieldProblems.map(({ field, message }) => `${field}: ${message}`).join('\n'),
      problems: fieldProblems,
    });
  }
}

export class InvalidTokenError extends ApiError {
  constructor() {
    super(401, 'invalid_token', 'Invalid token.', { headers: { 'www-authenticate': 'Token' } });
  }
}

/** 401 that does not reveal whether the user exists. */
export class SignInRejectedError extends ApiError {
  constructor() {
    super(401, 'sign_in_rejected', 'The e-mail address or the password is wrong.', {
      headers: { 'www-authenticate': 'Token' },
    });
  }
}

/** 403. @param reason completes "Access denied: " */
export class AccessDeniedError extends ApiError {
  constructor(reason: string) {
    super(403, 'access_denied', `Access denied: ${reason}`);
  }
}

/** The cached caller is outdated and must be read again. Nothing was written. */
export class StaleCredentialError extends Error {
  readonly code = 'stale_credential';
}

/** Another transaction has locked the run, and the batch must not wait for it. Nothing was written. */
export class RunLockedError extends Error {
  readonly code = 'run_locked';
}

/** The response needs a slot for large bodies, for which its request must not wait in a slot of another budget. */
export class MemoryRequiredError extends Error {
  readonly code = 'memory_required';
}

/** The report needs a separate transaction instead of a batch. Nothing was written. */
export class UnbatchedReportError extends Error {
  readonly code = 'unbatched_report';
}

export class NotFoundError extends ApiError {
  constructor(userMessage = 'Not found.') {
    super(404, 'not_found', userMessage);
  }
}

export class MethodNotAllowedError extends ApiError {
  constructor(method: string, allowed: readonly string[]) {
    const allow = allowed.join(', ');
    super(405, 'method_not_allowed', `Method ${method} is not allowed here.`, {
      developerMessage: `allowed: ${allow}`,
      headers: { allow },
    });
  }
}

/** 408: the request did not arrive completely within its deadline. */
export class RequestTimeoutError extends ApiError {
  constructor() {
    super(408, 'request_timeout', 'The request took too long to arrive.', {
      headers: { connection: 'close' },
    });
  }
}

export class ConflictError extends ApiError {
  constructor(userMessage: string, headers: Record<string, string> = {}) {
    super(409, 'conflict', userMessage, { headers });
  }
}

/** 409 by which a runner knows that it must end the execution: the run has ended, or another runner may have claimed it. */
export class LeaseLostError extends ConflictError {
  constructor(userMessage: string) {
    super(userMessage, { 'lease-lost': 'true' });
  }
}

/**
 * `Retry-After` of a request whose `Idempotency-Key` is in use: most requests end within a second; if the process of
 * the first one has died, the key is free after a minute at most.
 */
const KEY_RETRY_AFTER_SECONDS = 1;

/** 409: the first request with the `Idempotency-Key` is still running. */
export class KeyInUseError extends ConflictError {
  constructor() {
    super('The first request with this Idempotency-Key is still running.', {
      'retry-after': String(KEY_RETRY_AFTER_SECONDS),
    });
  }
}

/** 410: a cursor cannot be used any more. @param data where to continue */
export class GoneError extends ApiError {
  constructor(userMessage: string, data: object) {
    super(410, 'gone', userMessage, { data });
  }
}

/** 411: an upload needs `Content-Length`, by which its size is checked before it is read. */
export class LengthRequiredError extends ApiError {
  constructor() {
    super(411, 'length_required', 'Content-Length is required.');
  }
}

/** 412: the resource has changed since the caller read it. */
export class PreconditionFailedError extends ApiError {
  constructor(userMessage: string) {
    super(412, 'precondition_failed', userMessage);
  }
}

/** The media types of bodies, and their names in messages. */
export const BODY_TYPES = {
  json: { format: 'JSON', contentType: 'application/json' },
  form: { format: 'a form', contentType: 'application/x-www-form-urlencoded' },
} as const;

export class BodyTooLargeError extends ApiError {
  constructor(userMessage = 'The request body is too large.') {
    super(413, 'body_too_large', userMessage);
  }
}

/** 415: the body has another media type than the endpoint reads. */
export class UnsupportedContentTypeError extends ApiError {
  constructor(bodyType: 'json' | 'form' = 'json') {
    const { format, contentType } = BODY_TYPES[bodyType];
    super(
      415,
      'unsupported_content_type',
      `The request body must be ${format}: Content-Type must be ${contentType}.`,
      { developerMessage: `content-type: must be ${contentType}` },
    );
  }
}

/** 415: the charset in `Content-Type` is not UTF-8. */
export class UnsupportedCharsetError extends ApiError {
  constructor() {
    super(
      415,
      'unsupported_charset',
      'The request body must be in UTF-8: the charset in Content-Type is not supported.',
      { developerMessage: 'content-type: charset must be utf-8' },
    );
  }
}

/** 415: the body has a `Content-Encoding`. Only this 415 has `Accept-Encoding` (RFC 9110, section 12.5.3). */
export class UnsupportedEncodingError extends ApiError {
  constructor() {
    super(
      415,
      'unsupported_encoding',
      'The request body must not be compressed: its Content-Encoding is not supported. Accept-Encoding names the supported one.',
      {
        developerMessage: 'content-encoding: must be absent or identity',
        headers: { 'accept-encoding': 'identity' },
      },
    );
  }
}

/** 416. @param size of the file in bytes */
export class RangeNotSatisfiableError extends ApiError {
  constructor(size: number) {
    super(416, 'range_not_satisfiable', `The file has ${size} bytes: the range is outside of it.`, {
      headers: { 'content-range': `bytes */${size}` },
    });
  }
}

/** 417: the `Expect` header is not `100-continue`. */
export class ExpectationFailedError extends ApiError {
  constructor() {
    super(417, 'expectation_failed', 'The Expect header is not supported.');
  }
}

/** 422: the `Idempotency-Key` was used with another body before. */
export class IdempotencyKeyReusedError extends ApiError {
  constructor() {
    super(422, 'idempotency_key_reused', 'The idempotency key was used with another body.');
  }
}

/** 429. @param retryAfterSeconds whole seconds until another call may succeed */
export class TooManyRequestsError extends ApiError {
  constructor(retryAfterSeconds: number) {
    super(429, 'too_many_requests', 'Too many requests.', {
      headers: { 'retry-after': String(retryAfterSeconds) },
    });
  }
}

/** 431: the headers of the request are too large. */
export class HeadersTooLargeError extends ApiError {
  constructor() {
    super(431, 'headers_too_large', 'The request’s headers are too large.');
  }
}

const RETRY_AFTER_SECONDS = 5;

/** 503: the database, the queue, the artifact store or this process is unavailable or overloaded. */
export class UnavailableError extends ApiError {
  constructor(userMessage = 'The service is temporarily unavailable.') {
    super(503, 'unavailable', userMessage, {
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    });
  }
}

/** 500: shows the request id, by which the error is found in the log. */
export class UnhandledError extends ApiError {
  constructor(requestId: string) {
    super(500, 'unhandled_error', 'Something went wrong.', { developerMessage: `request id: ${requestId}` });
  }
}

/** Merges the messages of each field into one problem, without the field's name. */
function problemsByField(problems: readonly Problem[]): Problem[] {
  const messages = new Map<string, string[]>();
  for (const { field, message } of problems) {
    messages.set(field, [...(messages.get(field) ?? []), stripLabel(field, message)]);
  }
  return [...messages].map(([field, fieldMessages]) => ({ field, message: fieldMessages.join('; ') }));
}

/** Removes the field's name (`event_types.0` or `event_types[0]`) from the message, which is shown with it. */
function stripLabel(field: string, message: string): string {
  const labels = [field, field.replaceAll(/\.(\d+)/g, '[$1]')];
  const label = labels.find((candidate) => message.startsWith(`${candidate} `));
  return label === undefined ? message : message.slice(label.length + 1);
}
