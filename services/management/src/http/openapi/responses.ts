import type { Problem } from '@runhook/contract';
import { BODY_BYTES_MAX } from '../body.ts';
import { LIMIT_MAX } from '../query-parameters.ts';
import {
  count,
  type Header,
  type Reference,
  type Response,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from './field-schemas.ts';

/** Whole seconds after which a call may succeed. */
const RETRY_AFTER: Record<string, Header> = {
  'Retry-After': {
    description: 'Seconds until another call may succeed.',
    required: true,
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
};

const ALLOW: Record<string, Header> = {
  Allow: { description: 'The methods of the path.', required: true, schema: { type: 'string' } },
};

const WWW_AUTHENTICATE: Record<string, Header> = {
  'WWW-Authenticate': {
    description: 'The authentication scheme.',
    required: true,
    schema: { type: 'string' },
  },
};

const ACCEPT_ENCODING: Record<string, Header> = {
  'Accept-Encoding': {
    description: 'Present if the `Content-Encoding` of the body is not supported: the supported one.',
    required: false,
    schema: { type: 'string', pattern: '^identity$' },
  },
};

const LEASE_LOST = {
  text: 'With `Lease-Lost: true`, the run has ended, or another runner has claimed it since: its execution must end.',
  headers: {
    'Lease-Lost': {
      description: 'Present if the run has ended, or another runner has claimed it since.',
      required: false,
      schema: { type: 'string', const: 'true' },
    },
  },
} as const satisfies { text: string; headers: Record<string, Header> };

function failureResponse(
  code: number,
  description: string,
  example: { user: string; developer?: string; errors?: Problem[] },
  headers?: Record<string, Header>,
): Response {
  const { user, developer = '', errors } = example;
  const status = {
    code,
    is_success: false,
    user_message: user,
    developer_message: developer,
    ...(errors === undefined ? {} : { errors }),
  };
  return {
    description,
    ...(headers ? { headers } : {}),
    content: { 'application/json': { schema: schemaRef('Failure'), example: { status, data: null } } },
  };
}

/** The error responses of operations by status: the errors of `http/errors.ts`, except 417 and 431. */
const FAILURES = {
  400: {
    name: 'InvalidRequest',
    response: failureResponse(
      400,
      'The request is invalid. `errors` has an entry for each invalid field, `developer_message` a line.',
      {
        user: 'Invalid request: limit must be an integer between 1 and 100.',
        developer: 'limit: must be an integer between 1 and 100',
        errors: [{ field: 'limit', message: 'must be an integer between 1 and 100' }],
      },
    ),
  },
  401: {
    name: 'InvalidToken',
    response: failureResponse(
      401,
      'The credential is missing, malformed, unknown, revoked or expired; the response does not say which.',
      { user: 'Invalid token.' },
      WWW_AUTHENTICATE,
    ),
  },
  403: {
    name: 'AccessDenied',
    response: failureResponse(
      403,
      'The credential is valid, but does not permit the call: it belongs to another account, its holder lacks a licence or permission set (the message names those that suffice), or the plan or deployment of the account does not include the feature.',
      { user: 'Access denied: Token is not scoped to account.' },
    ),
  },
  404: {
    name: 'NotFound',
    response: failureResponse(
      404,
      'No such object. A malformed id, a deleted object and an object of another account have the same response.',
      { user: 'Not found.' },
    ),
  },
  405: {
    name: 'MethodNotAllowed',
    response: failureResponse(
      405,
      'The path does not support this method.',
      { user: 'Method PATCH is not allowed here.', developer: 'allowed: GET, HEAD, POST' },
      ALLOW,
    ),
  },
  408: {
    name: 'RequestTimeout',
    response: failureResponse(408, 'The body did not arrive in time. The connection is closed.', {
      user: 'The request took too long to arrive.',
    }),
  },
  409: {
    name: 'Conflict',
    response: failureResponse(409, 'The current state does not permit the call.', {
      user: 'The delivery is still pending.',
    }),
  },
  411: {
    name: 'LengthRequired',
    response: failureResponse(411, 'An upload has no `Content-Length`.', {
      user: 'Content-Length is required.',
    }),
  },
  412: {
    name: 'PreconditionFailed',
    response: failureResponse(
      412,
      'The subscription has changed since the response with the `ETag` in `If-Match`.',
      {
        user: 'The webhook was changed meanwhile: read it again.',
      },
    ),
  },
  413: {
    name: 'BodyTooLarge',
    response: failureResponse(
      413,
      `The body is larger than ${BODY_BYTES_MAX.default} bytes (sign-in ${BODY_BYTES_MAX.signIn}, the start of a run ${BODY_BYTES_MAX.run}, its end and steps ${BODY_BYTES_MAX.steps}, events ${BODY_BYTES_MAX.events}).`,
      {
        user: 'The request body is too large.',
      },
    ),
  },
  415: {
    name: 'UnsupportedContentType',
    response: failureResponse(
      415,
      'The body is not JSON, not in UTF-8, or compressed; the message says which.',
      {
        user: 'The request body must be JSON: Content-Type must be application/json.',
        developer: 'content-type: must be application/json',
      },
      ACCEPT_ENCODING,
    ),
  },
  416: {
    name: 'RangeNotSatisfiable',
    response: failureResponse(416, 'The range is outside of the file.', {
      user: 'The file has 10 bytes: the range is outside of it.',
    }),
  },
  422: {
    name: 'Unprocessable',
    response: failureResponse(422, 'The `Idempotency-Key` was used with another body.', {
      user: 'The idempotency key was used with another body.',
    }),
  },
  429: {
    name: 'TooManyRequests',
    response: failureResponse(
      429,
      'The rate limit or the limit of concurrent calls is exceeded.',
      { user: 'Too many requests.' },
      RETRY_AFTER,
    ),
  },
  500: {
    name: 'UnhandledError',
    response: failureResponse(500, 'A defect of the service. The log has the error under the request id.', {
      user: 'Something went wrong.',
      developer: 'request id: 1f0c2c9e-7d0e-4c38-9d3e-0a6d0a2f1f5b',
    }),
  },
  503: {
    name: 'Unavailable',
    response: failureResponse(
      503,
      'The database, the queue or the artifact store is not available.',
      { user: 'The service is temporarily unavailable.' },
      RETRY_AFTER,
    ),
  },
} as const satisfies Record<number, { name: string; response: Response }>;

export type FailureCode = keyof typeof FAILURES;

/** `components.responses`, without those that each operation describes itself. */
export const RESPONSES: Record<string, Response> = Object.fromEntries(
  Object.entries(FAILURES)
    .filter(([code]) => !['409', '411', '416'].includes(code))
    .map(([, { name, response }]) => [name, response]),
);

export function failure(code: Exclude<FailureCode, 409>): Reference {
  return { $ref: `#/components/responses/${FAILURES[code].name}` };
}

/** Returns an error response whose description states what it means for the operation. */
export function failureWithReason(code: FailureCode, description: string, userMessage: string): Response {
  const { headers } = FAILURES[code].response as Response;
  return failureResponse(code, description, { user: userMessage }, headers);
}

/** Returns the 409 of a report with the `Lease-Token` of a runner. */
export function leaseConflict(description: string, userMessage: string): Response {
  return failureResponse(409, `${description} ${LEASE_LOST.text}`, { user: userMessage }, LEASE_LOST.headers);
}

/** Errors of every POST and PUT: a body is read even if none is needed. */
export const BODY_FAILURES = [400, 408, 413, 415] as const satisfies FailureCode[];

/** Errors that every operation of an access level may return. */
const SHARED_FAILURES = {
  anyone: [405, 429, 500, 503],
  caller: [401, 405, 429, 500, 503],
  /** Operations on the account in the path. */
  account: [401, 403, 404, 405, 429, 500, 503],
  /** Operations of the Runs API, which do not count towards the rate limit (docs/contract.md#rate-limits). */
  runs: [401, 403, 404, 405, 429, 500, 503],
} as const satisfies Record<string, Exclude<FailureCode, 409>[]>;

/** Returns the responses of an operation: its own, those of its access level, and `additionalFailures`. */
export function operationResponses(
  kind: keyof typeof SHARED_FAILURES,
  specificResponses: Record<number, Response | Reference>,
  additionalFailures: readonly Exclude<FailureCode, 409>[] = [],
): Record<string, Response | Reference> {
  const shared = Object.fromEntries(
    [...SHARED_FAILURES[kind], ...additionalFailures].map((code) => [code, failure(code)]),
  );
  return { ...shared, ...specificResponses };
}

/** Cursor of the feed. */
export const CURSOR_EXAMPLE =
  '5f0e1d2c3b4a59687786950413223140.81273.1795168800.wev_2rU0ZTYbOBXVEDmMJ8jLRfM9n1x';

/** Returns a success response. @param example of `data` */
export function success(
  code: number,
  description: string,
  data: Schema,
  example: unknown,
  kind: EnvelopeKind = 'single',
): Response {
  const status = kind === 'deleted' ? { code, is_success: true } : { code };
  const extra = {
    list: { pagination: { total_count: 1, count: 1 }, filters: { offset: 0, limit: 10 } },
    log: { pagination: { count: 1, next_before: null, scanned_until: null }, filters: { limit: 10 } },
    feed: { pagination: { count: 1, next_after: CURSOR_EXAMPLE, has_more: false }, filters: { limit: 10 } },
  };
  const body = isPage(kind) ? { data: [example], status, extra: extra[kind] } : { data: example, status };
  return {
    description,
    content: { 'application/json': { schema: envelope(code, data, kind), example: body } },
  };
}

/** Schemas of the OpenAPI document; see docs/contract.md#errors. */
export const envelopeSchemas: Record<string, Schema> = {
  PageExtra: responseObject<{ pagination: object; filters: object }>('Position of this page in the list.', {
    pagination: responseObject<{ total_count: number; count: number }>('Row counts.', {
      total_count: count('Number of all matching rows: the end of the list for paging with `offset`.'),
      count: count('Number of rows in this response.'),
    }),
    filters: responseObject<{ offset: number; limit: number }>('The filters that were applied.', {
      offset: count('Number of skipped rows.'),
      limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'The requested page size.' },
    }),
  }),

  FieldError: responseObject<Problem>('A problem of one field of a request.', {
    field: {
      type: 'string',
      description:
        'Path of the field in the body, with dots (`event_types.0`), or the name of a parameter or header; `body` for the whole body.',
      examples: ['client_url'],
    },
    message: {
      type: 'string',
      description: 'The problem, without the name of the field.',
      examples: ['must be an absolute http or https URL'],
    },
  }),

  FailureStatus: responseObject<{
    code: number;
    is_success: boolean;
    user_message: string;
    developer_message: string;
    errors?: Problem[];
  }>(
    'The error.',
    {
      code: { type: 'integer', minimum: 400, maximum: 599, description: 'The HTTP status.' },
      is_success: { type: 'boolean', const: false, description: 'Always false.' },
      user_message: text('A sentence for people.', { minLength: 1 }),
      developer_message: text(
        'Details for developers, for example one line per invalid field. May be empty.',
      ),
      errors: {
        type: 'array',
        items: schemaRef('FieldError'),
        minItems: 1,
        description: 'Only for a 400: an entry for each invalid field.',
      },
    },
    ['errors'],
  ),

  Failure: responseObject<{ status: object; data: null }>('The response to a call that failed.', {
    status: schemaRef('FailureStatus'),
    data: { type: 'null', description: 'No data.' },
  }),
};

/** Schemas of the `extra` of lists. `log` and `feed` have a cursor instead of an offset. */
const PAGE_EXTRAS = { list: 'PageExtra', log: 'LogPageExtra', feed: 'FeedExtra' } as const;
type EnvelopeKind = keyof typeof PAGE_EXTRAS | 'single' | 'deleted';

const isPage = (kind: EnvelopeKind): kind is keyof typeof PAGE_EXTRAS => kind in PAGE_EXTRAS;

/** Returns the schema of a success response: `data` in its envelope. Lists add the `extra` of a page. */
function envelope(code: number, data: Schema, kind: EnvelopeKind = 'single'): Schema {
  const statusCode: Schema = { type: 'integer', const: code, description: 'The HTTP status.' };
  const status =
    kind === 'deleted'
      ? responseObject<{ code: number; is_success: true }>('The result.', {
          code: statusCode,
          is_success: { type: 'boolean', const: true, description: 'It was deleted.' },
        })
      : responseObject<{ code: number }>('The result.', { code: statusCode });
  return isPage(kind)
    ? responseObject<{ data: unknown[]; status: object; extra: object }>('A page of a list.', {
        data: { type: 'array', items: data, description: 'The page.' },
        status,
        extra: schemaRef(PAGE_EXTRAS[kind]),
      })
    : responseObject<{ data: object; status: object }>('The envelope.', { data, status });
}
