import {
  DEFAULT_TEST_EVENT_TYPE,
  type EndpointTestFields,
  HEADER_LIMITS,
  HMAC_SECRET_PATTERN,
  type TestMessageFields,
} from '@runhook/contract';
import { LOGGED_RESPONSE_PROPERTIES } from '../deliveries/openapi.ts';
import {
  count,
  httpStatusText,
  microsTime,
  nullable,
  OPTIONAL_NAME_PATTERN,
  type Paths,
  type PropertiesOf,
  requestObject,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import {
  parameter,
  queryParameter,
  requestBody,
  someOfNames,
  withIdempotencyKey,
} from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { bodyExample } from '../http/openapi/webhooks.ts';
import { CUSTOM_HEADERS } from './custom-headers.ts';
import { OPTION_REQUEST_PROPERTIES } from './delivery-options-openapi.ts';
import { EVENT_TYPE, NEW_SUBSCRIPTION, REQUEST_FIELDS } from './fields.ts';
import { CREATED_SUBSCRIPTION_EXAMPLE, newSecret, WEBHOOK_WRITERS } from './openapi.ts';
import { NO_ENDPOINT_MESSAGE } from './require-subscription.ts';
import { EXCHANGE_EXAMPLE, type TestExchange, type Verification } from './sample-delivery.ts';

type VerificationWithExchange = Required<Verification> & { hmac_secret?: string };

const EXCHANGE: TestExchange = {
  ...EXCHANGE_EXAMPLE,
  url: NEW_SUBSCRIPTION.client_url,
  request_body: bodyExample('job.run.errored'),
};
const VERIFICATION_EXAMPLE = { verification_error: null, verification_status_code: '200' };
const UNSAVED_EXAMPLE: VerificationWithExchange = {
  ...VERIFICATION_EXAMPLE,
  verification_error_code: null,
  exchange: EXCHANGE,
  hmac_secret: CREATED_SUBSCRIPTION_EXAMPLE.hmac_secret as string,
};

const STORED_EXAMPLE: Required<Verification> = {
  ...VERIFICATION_EXAMPLE,
  verification_error_code: null,
  exchange: EXCHANGE,
};

const TAGS = ['Webhooks'];
const OUTCOME =
  'The response has the result of the endpoint, so a failure of the endpoint is a 200 as well. The log of deliveries does not contain the test.';

const NO_ENDPOINT = failureWithReason(409, 'The webhook has only a feed.', NO_ENDPOINT_MESSAGE);

/** Paths of the OpenAPI document; see docs/contract.md#test-endpoint. */
export const testPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/test': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'testSubscription',
      tags: TAGS,
      summary: 'Send a signed sample to the endpoint',
      parameters: [
        queryParameter('event_type', `The event type. Default: \`${DEFAULT_TEST_EVENT_TYPE}\`.`, EVENT_TYPE),
        queryParameter(
          'include',
          'Additional fields, names separated by commas. `error_code`: the error code, for programs; `exchange`: the complete request and response.',
          someOfNames(['error_code', 'exchange']),
        ),
      ],
      description: `For active and inactive webhooks, whatever their event types. ${OUTCOME} ${WEBHOOK_WRITERS}`,
      responses: operationResponses(
        'account',
        {
          200: success(200, 'The result.', schemaRef('Verification'), VERIFICATION_EXAMPLE),
          409: NO_ENDPOINT,
        },
        [400],
      ),
    },
    post: withIdempotencyKey({
      operationId: 'testStored',
      tags: TAGS,
      summary: 'Send an event to the endpoint in a chosen format',
      description: `Sends a sample or a past event exactly as an attempt would, in the format of the webhook or in another one. ${OUTCOME} ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('StoredTest', 'What to send.', {
        event_type: 'job.run.errored',
        format: 'slack',
      }),
      responses: operationResponses(
        'account',
        { 200: success(200, 'The result.', schemaRef('Verification'), STORED_EXAMPLE), 409: NO_ENDPOINT },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/test': {
    parameters: [parameter('AccountId')],
    post: withIdempotencyKey({
      operationId: 'testUnsaved',
      tags: TAGS,
      summary: 'Send a signed sample before saving',
      description: `To an endpoint that is not saved, by the same rules; nothing is stored. ${OUTCOME} ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('EndpointTest', 'The endpoint and the sample.', {
        client_url: NEW_SUBSCRIPTION.client_url,
        event_type: 'job.run.errored',
      }),
      responses: operationResponses(
        'account',
        { 200: success(200, 'The result.', schemaRef('UnsavedVerification'), UNSAVED_EXAMPLE) },
        BODY_FAILURES,
      ),
    }),
  },
};

const VERIFICATION: PropertiesOf<Required<Verification>> = {
  verification_error: {
    type: ['string', 'null'],
    description:
      'The error in a sentence; null if the endpoint accepted the request: by a 2xx, or by the rules of the format.',
  },
  verification_status_code: httpStatusText(
    'Status of the response, or without a response "504" (timeout) or "502"; `verification_error_code` has the cause.',
  ),
  verification_error_code: {
    type: ['string', 'null'],
    description:
      'Error code, for programs; `unsuccessful_status` or `not_accepted` if the endpoint responded. Null without an error. With `GET`, only if `include` requests it.',
  },
  exchange: schemaRef('TestExchange'),
};

const { client_url, signature_header } = REQUEST_FIELDS.properties ?? {};
const HEADERS: Schema = { type: 'object', additionalProperties: { type: 'string' } };

const { format, format_options } = OPTION_REQUEST_PROPERTIES;
const MESSAGE_FIELDS: PropertiesOf<Required<TestMessageFields>> = {
  event_type: { ...EVENT_TYPE, description: `Type of the sample. Default: \`${DEFAULT_TEST_EVENT_TYPE}\`.` },
  event_id: {
    type: ['string', 'null'],
    description:
      'An event of the account to send instead of a sample, with its id. Default, and if null: a sample.',
  },
  format: {
    ...format,
    description:
      'Format of the body; null: the payload of job run events. Default: that of a stored webhook, else that payload.',
  },
  format_options: {
    ...format_options,
    description: 'Options of the format. Default, and for `***`: the stored values.',
  },
};

export const testSchemas: Record<string, Schema> = {
  Verification: responseObject<Verification>('The result of a test.', VERIFICATION, [
    'verification_error_code',
    'exchange',
  ]),

  UnsavedVerification: responseObject<VerificationWithExchange>(
    'The result of a test, with the secret of its signature.',
    {
      ...VERIFICATION,
      hmac_secret: newSecret('The secret that signed this sample. Absent if the request supplied one.'),
    },
    ['hmac_secret'],
  ),

  TestExchange: responseObject<TestExchange>(
    'The complete request and response, as in the log of an attempt. With `GET`, only if `include` requests it.',
    {
      method: { type: 'string', const: 'POST', description: 'The method, as in every delivery.' },
      url: text('The URL of the request.'),
      started_at: microsTime('When it was sent.'),
      duration_ms: nullable(
        count('Duration in milliseconds, including connection, request and response; null for `no_address`.'),
      ),
      http_status_code: httpStatusText('As `verification_status_code`.'),
      error: {
        anyOf: [schemaRef('AttemptError'), { type: 'null' }],
        description: 'As `verification_error_code` and `verification_error`; null without an error.',
      },
      request_headers: {
        ...HEADERS,
        description:
          'Request headers by their names in lower case, with `***` in place of signatures and additional headers.',
      },
      request_body: text('The text that was sent and signed, with `***` in place of options of the format.'),
      ...LOGGED_RESPONSE_PROPERTIES,
      timings: {
        anyOf: [schemaRef('AttemptTimings'), { type: 'null' }],
        description: 'Duration of each phase; null if nothing was sent.',
      },
    },
  ),

  StoredTest: requestObject<TestMessageFields>('What a test of a webhook sends.', MESSAGE_FIELDS, []),

  EndpointTest: requestObject<EndpointTestFields>(
    'An endpoint, and the sample to send to it.',
    {
      client_url: {
        ...(client_url as Schema),
        description: 'URL of the endpoint.',
        minLength: 1,
        format: 'uri',
      },
      ...MESSAGE_FIELDS,
      name: {
        type: ['string', 'null'],
        maxLength: 255,
        pattern: OPTIONAL_NAME_PATTERN,
        description:
          'The `webhookName` of the sample. Default, and if null or empty: a name that says it is not saved.',
      },
      hmac_secret: {
        type: ['string', 'null'],
        pattern: HMAC_SECRET_PATTERN.source,
        description:
          'The secret for the signature. Default (also null): a random secret, which the response contains.',
      },
      signature_header: signature_header as Schema,
      headers: {
        ...CUSTOM_HEADERS,
        description: `Up to ${HEADER_LIMITS.headersMax} additional headers by name, ${HEADER_LIMITS.totalBytesMax} bytes in total, each with its value, because no stored value exists that a mask could refer to.`,
      },
    },
    ['client_url'],
  ),
};
