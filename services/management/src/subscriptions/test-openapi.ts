import {
  DEFAULT_TEST_EVENT_TYPE,
  type EndpointTestFields,
  HEADER_LIMITS,
  HMAC_SECRET_PATTERN,
} from '@runhook/contract';
import { LOGGED_RESPONSE_PROPERTIES } from '../deliveries/openapi.ts';
import {
  count,
  httpStatusText,
  microsTime,
  OPTIONAL_NAME_PATTERN,
  type Paths,
  type PropertiesOf,
  requestObject,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { parameter, queryParameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, operationResponses, success } from '../http/openapi/responses.ts';
import { bodyExample } from '../http/openapi/webhooks.ts';
import { EVENT_TYPE, NEW_SUBSCRIPTION, REQUEST_FIELDS } from './fields.ts';
import { CREATED_SUBSCRIPTION_EXAMPLE, newSecret, WEBHOOK_WRITERS } from './openapi.ts';
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

const TAGS = ['Webhooks'];
const OUTCOME =
  'How the endpoint took it is the answer, so a failure of the endpoint is a 200 too. Nothing of it is in the log.';
const INCLUDE_PATTERN = '(error_code|exchange)';

/** See docs/contract.md#test-endpoint. */
export const testPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/test': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'testSubscription',
      tags: TAGS,
      summary: 'Send a signed sample to the endpoint',
      parameters: [
        queryParameter(
          'event_type',
          `Of which event. \`${DEFAULT_TEST_EVENT_TYPE}\` when left out.`,
          EVENT_TYPE,
        ),
        queryParameter(
          'include',
          'What to answer beside the rest, names with commas between them. `error_code`: why it failed, for programs; `exchange`: all that went over the wire.',
          { type: 'string', pattern: `^${INCLUDE_PATTERN}(,${INCLUDE_PATTERN})*$` },
        ),
      ],
      description: `Active or not, and whichever events it fires for. ${OUTCOME} ${WEBHOOK_WRITERS}`,
      responses: operationResponses(
        'account',
        { 200: success(200, 'How it went.', schemaRef('Verification'), VERIFICATION_EXAMPLE) },
        [400],
      ),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/test': {
    parameters: [parameter('AccountId')],
    post: withIdempotencyKey({
      operationId: 'testUnsaved',
      tags: TAGS,
      summary: 'Send a signed sample before anything is saved',
      description: `To an endpoint as it would be saved, by the same rules; nothing is stored. ${OUTCOME} ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('EndpointTest', 'What to send, and where.', {
        client_url: NEW_SUBSCRIPTION.client_url,
        event_type: 'job.run.errored',
      }),
      responses: operationResponses(
        'account',
        { 200: success(200, 'How it went.', schemaRef('UnsavedVerification'), UNSAVED_EXAMPLE) },
        BODY_FAILURES,
      ),
    }),
  },
};

const VERIFICATION: PropertiesOf<Required<Verification>> = {
  verification_error: {
    type: ['string', 'null'],
    description: 'What went wrong, in a sentence; null when the endpoint answered with a 2xx.',
  },
  verification_status_code: httpStatusText(
    'What the endpoint answered, or, when no answer came, "504" (not in time) or "502"; `verification_error_code` tells them apart.',
  ),
  verification_error_code: {
    type: ['string', 'null'],
    description:
      'What went wrong, for programs; `unsuccessful_status` when the endpoint answered. Null when nothing did. With `GET`, absent unless asked for with `include`.',
  },
  exchange: schemaRef('TestExchange'),
};

const { client_url, signature_header } = REQUEST_FIELDS.properties ?? {};
const HEADERS: Schema = { type: 'object', additionalProperties: { type: 'string' } };

export const testSchemas: Record<string, Schema> = {
  Verification: responseObject<Verification>('How the endpoint took the sample.', VERIFICATION, [
    'verification_error_code',
    'exchange',
  ]),

  UnsavedVerification: responseObject<VerificationWithExchange>(
    'How the endpoint took the sample, and what signed it.',
    {
      ...VERIFICATION,
      hmac_secret: newSecret('What signed this one sample. Absent when the request brought a secret.'),
    },
    ['hmac_secret'],
  ),

  TestExchange: responseObject<TestExchange>(
    'All that went over the wire, as the log has it of an attempt. Absent unless asked for with `include`.',
    {
      method: { type: 'string', const: 'POST', description: 'As every delivery.' },
      url: text('Where it was sent.'),
      started_at: microsTime('When it was sent.'),
      duration_ms: count('How long it took, in milliseconds: connecting, request and answer together.'),
      http_status_code: httpStatusText('As `verification_status_code`.'),
      error: {
        anyOf: [schemaRef('AttemptError'), { type: 'null' }],
        description: 'As `verification_error_code` and `verification_error`; null when nothing went wrong.',
      },
      request_headers: {
        ...HEADERS,
        description:
          'What was sent, by lower-case names. `***` stands for signatures and headers of your own.',
      },
      request_body: text('The exact text that was sent and signed.'),
      ...LOGGED_RESPONSE_PROPERTIES,
      timings: {
        anyOf: [schemaRef('AttemptTimings'), { type: 'null' }],
        description: 'How long its phases took; null when nothing was sent.',
      },
    },
  ),

  EndpointTest: requestObject<EndpointTestFields>(
    'An endpoint, and what to send to it.',
    {
      client_url: client_url as Schema,
      event_type: { ...EVENT_TYPE, default: DEFAULT_TEST_EVENT_TYPE },
      name: {
        type: ['string', 'null'],
        maxLength: 255,
        pattern: OPTIONAL_NAME_PATTERN,
        description:
          'The `webhookName` of the sample. Null, empty or left out: a name that says it is not saved.',
      },
      hmac_secret: {
        type: ['string', 'null'],
        pattern: HMAC_SECRET_PATTERN.source,
        description: 'What signs it. Null or left out: a random secret, which the answer tells.',
      },
      signature_header: signature_header as Schema,
      headers: {
        type: ['object', 'null'],
        additionalProperties: { type: 'string', maxLength: HEADER_LIMITS.valueCharactersMax },
        description: `Up to ${HEADER_LIMITS.headersMax} headers of your own by name, each with its value: none is stored that a mask could stand for.`,
      },
    },
    ['client_url'],
  ),
};
