import {
  count,
  httpStatusText,
  idText,
  integerId,
  microsTime,
  nullable,
  type Paths,
  type PropertiesOf,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
  TIMESTAMP,
  TIMESTAMP_FORMATS,
  text,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter, queryParameter, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { bodyExample, PAYLOAD_EXAMPLES } from '../http/openapi/webhooks.ts';
import { EVENT_TYPE, SUBSCRIPTION_EXAMPLE, WEBHOOK_WRITERS } from '../subscriptions/openapi.ts';
import {
  type AttemptView,
  DELIVERY_STATUSES,
  type DeliveryView,
  type TimingsView,
  type WaitingFor,
} from './delivery.ts';
import { READ_COUNT_MAX, TOTAL_COUNT_MAX } from './log-statements.ts';

export const DELIVERY_STATUS: Schema = {
  type: 'string',
  enum: DELIVERY_STATUSES,
  description:
    '`pending` while attempts are left; `delivered` after a 2xx; `failed` after the last attempt failed; `cancelled` if the webhook was inactive or deleted, or the account had no webhooks, when an attempt was due, or at once if too many deliveries of the account were pending.',
};

/** Properties of a schema of the OpenAPI document; see docs/contract.md#deliveries. */
export const DELIVERY_PROPERTIES: PropertiesOf<DeliveryView> = {
  id: prefixedId('wdl_', 'Id of the delivery.'),
  subscription_id: prefixedId('wsu_', 'The webhook of the delivery.'),
  event_id: prefixedId('wev_', 'The event; it has one id for all webhooks and all attempts.'),
  event_type: EVENT_TYPE,
  job_id: idText('The job of the run.', '12'),
  job_name: text('Name of the job when the event happened.'),
  run_id: idText('The run of the event.', '345'),
  status: DELIVERY_STATUS,
  reason: { type: ['string', 'null'], description: 'Reason of the failure or cancellation; otherwise null.' },
  attempt_count: count('Number of attempts so far, in all cycles.'),
  http_status_code: httpStatusText(
    'Status of the latest attempt: that of the response, or without a response "504" (timeout) or "502"; `error_code` has the cause. "0" before the first attempt.',
  ),
  error_code: {
    type: ['string', 'null'],
    description:
      'Error code of the latest attempt, as in its `error`; `unsuccessful_status` or `not_accepted` if the endpoint responded. Null if it did not fail, and before the first attempt.',
  },
  created_at: microsTime('When the event was fanned out to this webhook.'),
  completed_at: nullable(microsTime('When it was delivered, failed or cancelled; null while it is pending.')),
  next_attempt_at: nullable(
    microsTime(
      'When the next attempt is due; null if there is none, and while it waits for other deliveries of its subscription.',
    ),
  ),
  duration_ms: nullable(
    count('Duration of the latest attempt in milliseconds; null before the first, and for `no_address`.'),
  ),
  waiting_for: {
    description: 'What it waits for. Absent unless it waits.',
    oneOf: [
      responseObject<Extract<WaitingFor, { kind: 'order' }>>('An earlier event of its run.', {
        kind: { type: 'string', const: 'order', description: 'Kind of the wait.' },
        event_type: EVENT_TYPE,
        delivery_id: prefixedId('wdl_', 'The delivery that it waits for.'),
      }),
      responseObject<Extract<WaitingFor, { kind: 'rate_limit' }>>('The rate limit of its webhook.', {
        kind: { type: 'string', const: 'rate_limit', description: 'Kind of the wait.' },
      }),
    ],
  },
  out_of_order: {
    type: 'boolean',
    const: true,
    description: 'A later event of its run was sent before, to an ordered webhook. Absent otherwise.',
  },
};

/** Properties of {@link DELIVERY_PROPERTIES} that may be absent. */
export const OPTIONAL_DELIVERY_PROPERTIES = ['waiting_for', 'out_of_order'] as const;

const HEADERS: Schema = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Headers by their names in lower case.',
};

/** Stored fields of an endpoint's response. */
export const LOGGED_RESPONSE_PROPERTIES = {
  response_headers: {
    ...HEADERS,
    type: ['object', 'null'],
    description:
      'Response headers by their names in lower case; null without a response. Secrets of the request are `***`.',
  },
  response_body: {
    type: ['string', 'null'],
    description:
      'The beginning of the response body, up to 16 KiB; null without a response. Secrets of the request are `***`.',
  },
  response_truncated: {
    type: 'boolean',
    description: 'Whether `response_body` is incomplete: the body was longer than the limit, or was cut off.',
  },
} satisfies Record<string, Schema>;

export const deliverySchemas: Record<string, Schema> = {
  Delivery: responseObject<DeliveryView>(
    'The delivery of one event to one webhook.',
    DELIVERY_PROPERTIES,
    OPTIONAL_DELIVERY_PROPERTIES,
  ),

  DeliveryWithAttempts: responseObject<DeliveryView & { payload: string | null; attempts: AttemptView[] }>(
    'A delivery with its payload and attempts.',
    {
      ...DELIVERY_PROPERTIES,
      payload: {
        type: ['string', 'null'],
        contentMediaType: 'application/json',
        contentSchema: schemaRef('DeliveryPayload'),
        description:
          'The exact text of the body, the same in every attempt in the same format: that of the latest attempt, with options of the format as `***`. Null if retention has already removed the event but not yet the delivery.',
      },
      attempts: {
        type: 'array',
        items: schemaRef('Attempt'),
        description: 'All attempts, oldest first.',
      },
    },
    OPTIONAL_DELIVERY_PROPERTIES,
  ),

  Attempt: responseObject<AttemptView>(
    'One attempt of a delivery.',
    {
      number: { type: 'integer', minimum: 1, description: 'Counts over all cycles of the delivery.' },
      trigger: {
        type: 'string',
        enum: ['automatic', 'manual'],
        description: '`manual` for the first attempt of a redelivery; its retries are `automatic`.',
      },
      started_at: microsTime('When it started.'),
      duration_ms: nullable(
        count('Duration in milliseconds, including connection, request and response; null for `no_address`.'),
      ),
      http_status_code: httpStatusText(
        'Status of the response, or without a response "504" (timeout) or "502"; `error` has the cause.',
      ),
      error: {
        anyOf: [schemaRef('AttemptError'), { type: 'null' }],
        description: 'The error of the attempt; null if it did not fail.',
      },
      request_headers: {
        ...HEADERS,
        description:
          'Request headers by their names in lower case, with `***` in place of signatures and additional headers.',
      },
      ...LOGGED_RESPONSE_PROPERTIES,
      timings: {
        anyOf: [schemaRef('AttemptTimings'), { type: 'null' }],
        description: 'Duration of each phase; null if nothing was sent.',
      },
      format: {
        type: 'string',
        description: 'Format of the body. Absent if it is the payload of job run events.',
      },
    },
    ['format'],
  ),

  AttemptTimings: responseObject<TimingsView>(
    'The phases of an attempt in milliseconds. Null for a phase that did not take place: it was not reached, a connection was reused, or there was no TLS.',
    {
      dns_ms: nullable(count('Name resolution; 0 for an IP address.')),
      connect_ms: nullable(count('The TCP connection.')),
      tls_ms: nullable(count('The TLS handshake.')),
      first_byte_ms: nullable(count('From the end of the request to the head of the response.')),
      total_ms: count('The whole attempt, including the wait for a free connection and the response body.'),
    },
  ),

  AttemptError: responseObject<NonNullable<AttemptView['error']>>('The error of an attempt.', {
    code: {
      type: 'string',
      description: 'Error code for programs.',
      examples: ['timeout', 'connection_refused'],
    },
    message: { type: 'string', description: 'A sentence for people.' },
  }),
};

const tags = ['Deliveries'];

export const DELIVERY_EXAMPLE: DeliveryView = {
  id: 'wdl_3MMmREvOSGeIvAOczCddVh2Ios8',
  subscription_id: SUBSCRIPTION_EXAMPLE.id,
  event_id: PAYLOAD_EXAMPLES['job.run.errored'].eventId,
  event_type: 'job.run.errored',
  job_id: '12',
  job_name: 'Nightly',
  run_id: '345',
  status: 'delivered',
  reason: null,
  attempt_count: 1,
  http_status_code: '200',
  error_code: null,
  created_at: '1795168800100000',
  completed_at: '1795168800223456',
  next_attempt_at: null,
  duration_ms: 100,
};

const PENDING_DELIVERY_EXAMPLE: DeliveryView = {
  ...DELIVERY_EXAMPLE,
  status: 'pending',
  completed_at: null,
  next_attempt_at: '1795169000000000',
};

const ATTEMPT_EXAMPLE: AttemptView = {
  number: 1,
  trigger: 'automatic',
  started_at: '1795168800123456',
  duration_ms: 100,
  http_status_code: '200',
  error: null,
  request_headers: { 'content-type': 'application/json', authorization: '***' },
  response_headers: { 'content-type': 'text/plain' },
  response_body: 'thanks',
  response_truncated: false,
  timings: { dns_ms: 4, connect_ms: 21, tls_ms: 27, first_byte_ms: 46, total_ms: 99 },
};

const DELIVERY_WITH_ATTEMPTS_EXAMPLE = {
  ...DELIVERY_EXAMPLE,
  payload: bodyExample('job.run.errored'),
  attempts: [ATTEMPT_EXAMPLE],
};

/** Paths of the OpenAPI document; see docs/contract.md#deliveries. */
export const deliveryPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/deliveries': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'listDeliveries',
      tags,
      summary: 'List the deliveries of a subscription',
      description: `Newest first, as long as the log retains them (by default 30 days). \`total_count\` stops at ${TOTAL_COUNT_MAX}; with a \`status\` other than \`delivered\`, and for the first requests of a long log, at ${READ_COUNT_MAX} for earlier pages.`,
      parameters: [
        queryParameter('status', 'Only deliveries in this state.', DELIVERY_STATUS),
        queryParameter('event_type', 'Only deliveries of this event type.', EVENT_TYPE),
        queryParameter('run_id', 'Only deliveries of events of this run.', integerId('Id of the run.', 345)),
        queryParameter(
          'since',
          `Only deliveries created at or after this time; a delivery whose event id is more than a day older is listed under the day of that id. ${TIMESTAMP_FORMATS}`,
          TIMESTAMP,
        ),
        queryParameter('until', `Only deliveries created before this time. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of deliveries.', schemaRef('Delivery'), DELIVERY_EXAMPLE, 'list') },
        [400],
      ),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/delivery/{delivery_id}': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('DeliveryId')],
    get: {
      operationId: 'getDelivery',
      tags,
      summary: 'Get a delivery with its payload and every attempt',
      description: 'Available while the log has it.',
      responses: operationResponses('account', {
        200: success(200, 'The delivery.', schemaRef('DeliveryWithAttempts'), DELIVERY_WITH_ATTEMPTS_EXAMPLE),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/delivery/{delivery_id}/redeliver': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('DeliveryId')],
    post: withIdempotencyKey({
      operationId: 'redeliver',
      tags,
      summary: 'Redeliver',
      description: `Sends the same delivery with the same body: one attempt at once, then retries. No request body. ${WEBHOOK_WRITERS}`,
      responses: operationResponses(
        'account',
        {
          202: success(202, 'The redelivery is on record.', schemaRef('Delivery'), PENDING_DELIVERY_EXAMPLE),
          409: failureWithReason(
            409,
            'The delivery is still pending, or its webhook is inactive.',
            'The delivery is still pending.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },
};
