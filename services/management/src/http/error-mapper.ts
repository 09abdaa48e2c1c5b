import { isDatabaseUnavailable } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import type { ErrorRequestHandler } from 'express';
import { sendFailure } from './envelope.ts';
import {
  ApiError,
  BodyTooLargeError,
  InvalidRequestError,
  NotFoundError,
  UnavailableError,
  UnexpectedFaultError,
  UnsupportedContentTypeError,
} from './errors.ts';
import type { Log } from './request-log.ts';
import { requestState } from './request-state.ts';

/** The one place that turns what was thrown into an answer. */
export function mapErrors(log: Log): ErrorRequestHandler {
  return (thrown, _request, response, next) => {
    // The answer has begun: only Express can still do something about it, by cutting the connection.
    if (response.headersSent) return next(thrown);
    const { requestId, route } = requestState(response);
    const error = apiErrorFor(thrown, requestId);
    if (error.statusCode >= 500)
      log.error({ err: thrown, requestId, route, code: error.code }, 'request failed');
    sendFailure(response, { ...error, code: error.statusCode });
  };
}

function apiErrorFor(thrown: unknown, requestId: string): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (isDatabaseUnavailable(thrown) || thrown instanceof QueueUnavailableError) return new UnavailableError();
  // Express decodes path parameters; one that does not decode names nothing.
  if (thrown instanceof URIError) return new NotFoundError();
  return bodyError(thrown) ?? new UnexpectedFaultError(requestId);
}

/** What Express's body parser throws, by its `type`. */
function bodyError(thrown: unknown): ApiError | null {
  const type = thrown instanceof Error && 'type' in thrown ? thrown.type : null;
  switch (type) {
    case 'entity.too.large':
      return new BodyTooLargeError();
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return new UnsupportedContentTypeError();
    case 'entity.parse.failed':
      return new InvalidRequestError([{ field: 'body', message: 'body must be valid JSON' }]);
    case 'request.aborted':
    case 'request.size.invalid':
      return new InvalidRequestError([{ field: 'body', message: 'body is incomplete' }]);
    default:
      return null;
  }
}
