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
import { type AttemptView, DELIVERY_STATUSES, type DeliveryView, type TimingsView } from './delivery.ts';
import { READ_COUNT_MAX, TOTAL_COUNT_MAX } from './log-statements.ts';

export const DELIVERY_STATUS: Schema = {
  type: 'string',
  enum: DELIVERY_STATUSES,
  description:
    '`pending` while attempts are left; `delivered` after a 2xx; `failed` when the last attempt failed; `cancelled` when the webhook was inactive or gone, or the account had no webhooks, as its turn came, or at once when too much of the account waited.',
};

/** See docs/contract.md#deliveries. */
export const DELIVERY_PROPERTIES: PropertiesOf<DeliveryView> = {
  id: prefixedId('wdl_', 'Id of the delivery.'),
  subscription_id: prefixedId('wsu_', 'The webhook that it is for.'),
  event_id: prefixedId('wev_', 'The event; one event has one id for all webhooks and all attempts.'),
  event_type: EVENT_TYPE,
  job_id: idText('The job whose run it tells of.', '12'),
  job_name: text('Name of the job when the event happened.'),
  run_id: idText('The run that it tells of.', '345'),
  status: DELIVERY_STATUS,
  reason: { type: ['string', 'null'], description: 'Why it failed or was cancelled; null otherwise.' },
  attempt_count: count('Attempts made so far, of all cycles.'),
  http_status_code: httpStatusText(
    'Status of the latest attempt: what the endpoint answered, or, when no answer came, "504" (not in time) or "502"; `error_code` tells them apart. "0" before the first.',
  ),
  error_code: {
    type: ['string', 'null'],
    description:
      'Why the latest attempt failed, as in its `error`; `unsuccessful_status` when the endpoint answered. Null when it did not fail, and before the first.',
  },
  created_at: microsTime('When the event was fanned out to this webhook.'),
  completed_at: nullable(microsTime('When it was delivered, failed or cancelled; null while it is pending.')),
  next_attempt_at: nullable(
    microsTime(
      'When the next attempt is due; null when none is, and while it waits for others of its subscription.',
    ),
  ),
  duration_ms: nullable(count('How long the latest attempt took, in milliseconds; null before the first.')),
};

const HEADERS: Schema = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Headers by their lower-case names.',
};

/** Stored fields of an endpoint's response. */
export const LOGGED_RESPONSE_PROPERTIES = {
  response_headers: {
    ...HEADERS,
    type: ['object', 'null'],
    description: 'What was answered, by lower-case names; null when nothing was.',
  },
  response_body: {
    type: ['string', 'null'],
    description: 'The beginning of what was answered, up to 16 KiB; null when nothing was.',
  },
  response_truncated: {
    type: 'boolean',
    description:
      'Whether `response_body` is incomplete: the body was longer than is kept, or was cut off before its end.',
  },
} satisfies Record<string, Schema>;

export const deliverySchemas: Record<string, Schema> = {
  Delivery: responseObject<DeliveryView>('One event on its way to one webhook.', DELIVERY_PROPERTIES),

  DeliveryWithAttempts: responseObject<DeliveryView & { payload: string | null; attempts: AttemptView[] }>(
    'One delivery, with what was sent and how each attempt went.',
    {
      ...DELIVERY_PROPERTIES,
      payload: {
        type: ['string', 'null'],
        contentMediaType: 'application/json',
        contentSchema: schemaRef('DeliveryPayload'),
        description:
          'The exact text of the body, the same in every attempt. Null in the moment when retention has taken the event and not yet the delivery.',
      },
      attempts: {
        type: 'array',
        items: schemaRef('Attempt'),
        description: 'Every attempt, the first one first.',
      },
    },
  ),

  Attempt: responseObject<AttemptView>('One attempt to deliver.', {
    number: { type: 'integer', minimum: 1, description: 'Counted over all cycles of the delivery.' },
    trigger: {
      type: 'string',
      enum: ['automatic', 'manual'],
      description:
        '`manual` for the first attempt of a redelivery; its retries are automatic as those of the event are.',
    },
    started_at: microsTime('When it started.'),
    duration_ms: count('How long it took, in milliseconds: connecting, request and answer together.'),
    http_status_code: httpStatusText(
      'What the endpoint answered, or, when no answer came, "504" (not in time) or "502"; `error` tells them apart.',
    ),
    error: {
      anyOf: [schemaRef('AttemptError'), { type: 'null' }],
      description: 'Why the attempt failed; null when it did not.',
    },
    request_headers: {
      ...HEADERS,
      description: 'What was sent, by lower-case names. `***` stands for signatures.',
    },
    ...LOGGED_RESPONSE_PROPERTIES,
    timings: {
      anyOf: [schemaRef('AttemptTimings'), { type: 'null' }],
      description: 'How long its phases took; null when nothing was sent.',
    },
  }),

  AttemptTimings: responseObject<TimingsView>(
    'The phases of an attempt in milliseconds. Null is one that did not take place: it was not reached, a connection was kept, or there was no TLS.',
    {
      dns_ms: nullable(count('Resolving the name; 0 for an address.')),
      connect_ms: nullable(count('Connecting.')),
      tls_ms: nullable(count('The TLS handshake.')),
      first_byte_ms: nullable(count('From the request sent to the head of the answer.')),
      total_ms: count('All of it, with the wait for a free connection and the body of the answer.'),
    },
  ),

  AttemptError: responseObject<NonNullable<AttemptView['error']>>('Why an attempt failed.', {
    code: { type: 'string', description: 'For programs.', examples: ['timeout', 'connection_refused'] },
    message: { type: 'string', description: 'For people: one sentence.' },
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

/** See docs/contract.md#deliveries. */
export const deliveryPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/deliveries': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'listDeliveries',
      tags,
      summary: 'List the deliveries of a subscription',
      description: `Newest first, as long as the log keeps them: 30 days unless the operator set another time. \`total_count\` stops at ${TOTAL_COUNT_MAX}; with a \`status\` other than \`delivered\`, and the first times that a long log is asked for, at ${READ_COUNT_MAX} for pages before that.`,
      parameters: [
        queryParameter('status', 'Only those in this state.', DELIVERY_STATUS),
        queryParameter('event_type', 'Only those of this event type.', EVENT_TYPE),
        queryParameter('run_id', 'Only those that tell of this run.', integerId('Id of the run.', 345)),
        queryParameter(
          'since',
          `Only those created at this moment or later; one whose event id is older than a day then is listed under the day of that id. ${TIMESTAMP_FORMATS}`,
          TIMESTAMP,
        ),
        queryParameter('until', `Only those created before this moment. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('Delivery'), DELIVERY_EXAMPLE, 'list') },
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
      description: 'As long as the log has it.',
      responses: operationResponses('account', {
        200: success(200, 'It.', schemaRef('DeliveryWithAttempts'), DELIVERY_WITH_ATTEMPTS_EXAMPLE),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/delivery/{delivery_id}/redeliver': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('DeliveryId')],
    post: withIdempotencyKey({
      operationId: 'redeliver',
      tags,
      summary: 'Deliver again',
      description: `The same delivery with the same body: an attempt at once, and its retries. Needs no body. ${WEBHOOK_WRITERS}`,
      responses: operationResponses(
        'account',
        {
          202: success(202, 'It is on its way.', schemaRef('Delivery'), PENDING_DELIVERY_EXAMPLE),
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
