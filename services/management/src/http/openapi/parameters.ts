import { PATH_CHARACTERS_MAX, PATH_PATTERN } from '@runhook/artifacts';
import { LEASE_TOKEN_HEADER } from '../endpoint.ts';
import { LIMIT_DEFAULT, LIMIT_MAX, SEARCH_CHARACTERS_MAX } from '../query-parameters.ts';
import {
  type Header,
  integerId,
  KSUID,
  type Operation,
  type Parameter,
  prefixedId,
  type Reference,
  type RequestBody,
  type Response,
  type Schema,
  schemaRef,
  stepIndex,
} from './field-schemas.ts';
import { failure, failureWithReason } from './responses.ts';

/** Permission that reports of runs require. */
export const REPORTERS =
  'Requires one of the permission sets `job_runner`, `account_admin` and `admin`, on any plan.';

const pathParameter = (name: string, schema: Schema): Parameter => {
  const { description = '', ...rest } = schema;
  return { name, in: 'path', required: true, description, schema: rest };
};

/** Id of a session in `/api/v3/profile/sessions`. */
export const SESSION_ID: Schema = {
  type: 'string',
  pattern: '^[0-9a-f]{64}$',
  description: 'Id of the session; not that of the cookie.',
};

/** Parameters of paths and lists. */
export const PARAMETERS = {
  AccountId: pathParameter('account_id', integerId('The number of the account.', 1)),
  UserId: pathParameter('user_id', integerId('The number of the user.', 7)),
  WebhookId: pathParameter('webhook_id', prefixedId('wsu_', 'Id of the subscription.')),
  DeliveryId: pathParameter('delivery_id', prefixedId('wdl_', 'Id of the delivery.')),
  RecoveryId: pathParameter('recovery_id', prefixedId('wrc_', 'Id of the recovery.')),
  JobId: pathParameter('job_id', integerId('Id of the job.', 12)),
  ProjectId: pathParameter('project_id', integerId('Id of the project.', 3)),
  EnvironmentId: pathParameter('environment_id', integerId('Id of the environment.', 4)),
  RunId: pathParameter('run_id', integerId('Id of the run.', 345)),
  ArtifactPath: pathParameter('path', {
    type: 'string',
    maxLength: PATH_CHARACTERS_MAX,
    pattern: PATH_PATTERN,
    description: 'Path of the file. Its slashes may be escaped. No segment is `.` or contains `..`.',
    examples: ['run_results.json'],
  }),
  StepIndex: pathParameter('index', stepIndex()),
  SessionId: pathParameter('session_id', SESSION_ID),
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Makes a retry safe: for 24 hours, the same request with the same key is not executed again, but gets the stored response. Only successful responses are stored.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*$' },
  },
  LeaseToken: {
    name: LEASE_TOKEN_HEADER,
    in: 'header',
    description:
      'The `lease_token` of the claim: renews the lease, and is a 409 if another runner has claimed the run since. A report without it is accepted.',
    schema: { type: 'string', minLength: 1 },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description:
      'The `ETag` of the response that the request is based on: a 412 if the subscription has changed since. Without it the last request wins.',
    schema: { type: 'string' },
  },
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'Page size.',
    schema: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT },
  },
  Offset: {
    name: 'offset',
    in: 'query',
    description: 'Number of rows to skip.',
    schema: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 },
  },
} as const satisfies Record<string, Parameter>;

export function parameter(name: keyof typeof PARAMETERS): Reference {
  return { $ref: `#/components/parameters/${name}` };
}

/** An optional query parameter of one operation. */
export function queryParameter(name: string, description: string, schema: Schema): Parameter {
  return { name, in: 'query', description, schema };
}

/** The `account_id` that clients of this API family send in addition to that of the path. */
export function accountParameter(): Parameter {
  return queryParameter('account_id', 'The account of the path.', integerId('Id of the account.', 1));
}

/** Pattern of an id, for {@link listParameter}. */
export const ID_ITEM = '[1-9][0-9]{0,15}';

/**
 * A list, for which clients of this API family have several spellings.
 * @param item pattern of an item; any text when omitted
 */
export function listParameter(name: string, description: string, example: string, item?: string): Parameter {
  const quoted = `["']?(?:${item})["']?`;
  const list = `(?:${quoted}(?:, ?${quoted}){0,${LIMIT_MAX - 1}})?`;
  return queryParameter(
    name,
    `${description} Items are separated by commas, with or without brackets and quotes; the parameter may be repeated. Empty and \`[]\`: no filter.`,
    {
      type: 'string',
      ...(item !== undefined && { pattern: `^(?:${list}|\\[${list}\\])$` }),
      examples: [example],
    },
  );
}

const RANGE_TIME =
  '["\']?\\d{4}-\\d{2}-\\d{2}(?:[T ]\\d{2}:\\d{2}(?::\\d{2}(?:\\.\\d{1,9})?)?(?:Z|[+-]\\d{2}:\\d{2})?)?["\']?';

/** A range of times. */
export function rangeParameter(name: string, description: string): Parameter {
  return queryParameter(
    name,
    `${description}, both inclusive. A time that was reported in whole seconds matches from the second of the lower end on.`,
    {
      type: 'string',
      pattern: `^(?:\\[${RANGE_TIME}, ?${RANGE_TIME}\\])?$`,
      examples: ['["2026-11-20T10:00:00.123456+00:00","2026-11-20T11:00:00+00:00"]'],
    },
  );
}

/** @param names the closed list */
export function relatedParameter(names: readonly string[]): Parameter {
  const list = names.map((name) => `\`${name}\``).join(', ');
  return listParameter(
    'include_related',
    `Related objects to include: ${list}.`,
    `["${names[0]}"]`,
    names.join('|'),
  );
}

/** Up to `countMax` ids, separated by commas. */
export function prefixedIds(prefix: 'wsu_', countMax: number): Schema {
  const id = `${prefix}${KSUID}`;
  return { type: 'string', pattern: `^${id}(?:,${id}){0,${countMax - 1}}$` };
}

/** One or both names, separated by a comma, without repeats. */
export function someOfNames([first, second]: readonly [string, string]): Schema {
  return { type: 'string', pattern: `^(?:${first}(?:,${second})?|${second}(?:,${first})?)$` };
}

/** @param where completes "Only rows that have this text …" */
export function searchParameter(where: string): Parameter {
  const description = `Only rows that have this text ${where}, case-insensitive. Empty: all rows.`;
  return queryParameter('search', description, { type: 'string', maxLength: SEARCH_CHARACTERS_MAX });
}

/** Returns the parameter of a sort order: names with or without a minus, as clients of this API family send them. */
export function orderParameter(names: readonly string[], description: string): Parameter {
  return queryParameter('order_by', `Sort order; a minus reverses it. ${description}`, {
    type: 'string',
    enum: names.flatMap((name) => [name, `-${name}`]),
  });
}

export const PAGE = [parameter('Limit'), parameter('Offset')];

/** Returns the required JSON body of an operation. @param schema name of a schema of `components` */
export function requestBody(schema: string, description: string, example: unknown): RequestBody {
  return {
    description,
    required: true,
    content: { 'application/json': { schema: schemaRef(schema), example } },
  };
}

const STILL_RUNNING = 'The first request with this `Idempotency-Key` is still running.';

const IDEMPOTENT_REPLAY: Record<string, Header> = {
  'Idempotent-Replay': {
    description:
      'Present, and `true`, if this is the stored response to an earlier request with the same key.',
    required: false,
    schema: { type: 'string', pattern: '^true$' },
  },
};

const KEY_RETRY_AFTER: Record<string, Header> = {
  'Retry-After': {
    description:
      'Seconds until another call may succeed. Present if the first request with the same key is still running.',
    required: false,
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
};

/** Adds the `Idempotency-Key` to an operation: every POST on an account has it. */
export function withIdempotencyKey(operation: Operation): Operation {
  const { parameters = [], responses } = operation;
  const describedResponses = Object.entries(responses).map(([code, response]) => {
    if ('$ref' in response) return [code, response];
    if (Number(code) < 300)
      return [code, { ...response, headers: { ...response.headers, ...IDEMPOTENT_REPLAY } }];
    if (code !== '409') return [code, response];
    const description = `${response.description} ${STILL_RUNNING}`;
    return [code, { ...response, description, headers: { ...response.headers, ...KEY_RETRY_AFTER } }];
  });
  const conflict: Response = {
    ...failureWithReason(409, STILL_RUNNING, 'The first request with this Idempotency-Key is still running.'),
    headers: KEY_RETRY_AFTER,
  };
  return {
    ...operation,
    parameters: [...parameters, parameter('IdempotencyKey')],
    responses: { 409: conflict, ...Object.fromEntries(describedResponses), 422: failure(422) },
  };
}
