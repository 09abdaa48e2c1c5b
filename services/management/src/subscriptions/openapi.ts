import { EVENT_TYPES, OPTION_LIMITS } from '@runhook/contract';
import {
  type Operation,
  type Paths,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
} from '../http/openapi/field-schemas.ts';
import {
  listParameter,
  PAGE,
  parameter,
  queryParameter,
  requestBody,
  searchParameter,
  someOfNames,
  withIdempotencyKey,
} from '../http/openapi/parameters.ts';
import {
  BODY_FAILURES,
  failure,
  failureWithReason,
  operationResponses,
  success,
} from '../http/openapi/responses.ts';
import {
  INCLUDABLE_FIELDS,
  NEW_SUBSCRIPTION,
  OPTIONAL_RESPONSE_PROPERTIES,
  REQUEST_FIELDS,
  RESPONSE_PROPERTIES,
  type StoredView,
  SUBSCRIPTION_FIELDS_EXAMPLE,
  type SubscriptionView,
} from './fields.ts';
import { HEALTH } from './health.ts';
import { LABEL_FILTER } from './label-filters.ts';
import { ROTATION_SCHEMAS } from './rotation.ts';
import { SIGNATURE_KEY_SCHEMAS } from './signature-key.ts';
import { SUBSCRIPTION_ORDERS } from './statements.ts';

export { EVENT_TYPE, SUBSCRIPTION_FIELDS_EXAMPLE } from './fields.ts';

const tags = ['Webhooks'];

export const CREATED_SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...NEW_SUBSCRIPTION,
  hmac_secret: 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
};

export const SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...NEW_SUBSCRIPTION,
  dispatched_at: '1795168800123456',
  http_status_code: '200',
};

const DELETED_EXAMPLE = { id: NEW_SUBSCRIPTION.id };

export const WEBHOOK_WRITERS =
  'Requires, on Enterprise, one of the permission sets `account_admin`, `admin` and `developer`; on Team, the Developer licence of a user, or `account_admin` or `member` of a service token.';

const INCLUDE = queryParameter(
  'include',
  'Additional fields, names separated by commas. `error_code`: the error code of the latest attempt; `health`: the health of the endpoint.',
  someOfNames(INCLUDABLE_FIELDS),
);

/** A delivery of a subscription to its endpoint; the events are described in `webhooks` of the document. */
const DELIVERY: Operation = {
  operationId: 'onDelivery',
  tags: ['Received by endpoints'],
  summary: 'An event is delivered',
  description:
    'Sent for every matching event, signed, and retried until the response is a 2xx. The event types and their headers are described under the webhooks of this document.',
  security: [{ deliverySignature: [] }],
  requestBody: {
    description: 'The same bytes in every attempt.',
    required: true,
    content: { 'application/json': { schema: schemaRef('DeliveryPayload') } },
  },
  responses: {
    '2XX': { description: 'A 2xx in time: the event is delivered.' },
    '4XX': { description: 'Rejected: it is retried, as after any response other than a 2xx.' },
  },
};

/** Paths of the OpenAPI document; see docs/contract.md#subscriptions. */
export const subscriptionPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscriptions': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listSubscriptions',
      tags,
      summary: 'List the subscriptions of an account',
      description: 'Default: newest first.',
      parameters: [
        searchParameter('in their name, endpoint or description, or as their complete id'),
        queryParameter('active', 'Only active webhooks, or only inactive ones.', {
          type: 'boolean',
        }),
        queryParameter(
          'failing',
          'Only webhooks whose latest attempt failed, or only those whose latest attempt did not.',
          {
            type: 'boolean',
          },
        ),
        listParameter(
          'event_types',
          'Only webhooks with any of these event types.',
          'job.run.errored',
          EVENT_TYPES.map((type) => type.replaceAll('.', '[.]')).join('|'),
        ),
        queryParameter(
          'label',
          'Only webhooks with this label: its key, or `key:value`. May be repeated: the webhook must have all of them.',
          {
            type: 'array',
            items: { type: 'string', pattern: LABEL_FILTER.source, examples: ['team:data'] },
            maxItems: OPTION_LIMITS.labelsMax,
          },
        ),
        queryParameter(
          'order_by',
          'The first row: the newest, the first by name, the one with the latest attempt, or the latest to begin to fail. Equal rows are sorted newest first.',
          { type: 'string', enum: SUBSCRIPTION_ORDERS, default: 'created_at' },
        ),
        INCLUDE,
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of webhooks.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: withIdempotencyKey({
      operationId: 'createSubscription',
      tags,
      summary: 'Create a subscription',
      description: `Only this response has \`hmac_secret\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('SubscriptionFields', 'The new webhook.', SUBSCRIPTION_FIELDS_EXAMPLE),
      responses: operationResponses(
        'account',
        {
          201: success(
            201,
            'The webhook was created.',
            schemaRef('CreatedSubscription'),
            CREATED_SUBSCRIPTION_EXAMPLE,
          ),
          409: failureWithReason(
            409,
            'The account has the maximum number of webhooks, or a dispatcher of an older release is running, which does not support a field.',
            'The account has 1000 webhooks, the maximum.',
          ),
        },
        BODY_FAILURES,
      ),
      callbacks: { delivery: { '{$request.body#/client_url}': { post: DELIVERY } } },
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'getSubscription',
      tags,
      summary: 'Get a subscription',
      description: 'With the result of its latest attempt. Its secret is not shown again.',
      parameters: [INCLUDE],
      responses: operationResponses(
        'account',
        { 200: success(200, 'The webhook.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE) },
        [400],
      ),
    },
    put: {
      operationId: 'updateSubscription',
      tags,
      summary: 'Replace a subscription',
      parameters: [parameter('IfMatch')],
      description: `Omitted fields get their defaults, but those of \`active\` and of all fields after it in the schema stay unchanged. Existing deliveries are not changed; their next attempts use the new \`client_url\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody(
        'SubscriptionFields',
        'All fields of the webhook.',
        SUBSCRIPTION_FIELDS_EXAMPLE,
      ),
      responses: operationResponses(
        'account',
        {
          200: success(200, 'The updated webhook.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE),
          412: failure(412),
          409: failureWithReason(
            409,
            'The update lost against concurrent changes, or a dispatcher of an older release is running, which does not support a field.',
            'The webhook has just changed: try again.',
          ),
        },
        BODY_FAILURES,
      ),
    },
    delete: {
      operationId: 'deleteSubscription',
      tags,
      summary: 'Delete a subscription',
      description: `Nothing more is sent to it, and its log is available only in that of the account. ${WEBHOOK_WRITERS}`,
      responses: operationResponses('account', {
        200: success(
          200,
          'The webhook was deleted.',
          schemaRef('DeletedSubscription'),
          DELETED_EXAMPLE,
          'deleted',
        ),
      }),
    },
  },
};

export const subscriptionSchemas: Record<string, Schema> = {
  Subscription: responseObject<StoredView>(
    'A webhook: which events of which jobs go to which endpoint.',
    RESPONSE_PROPERTIES,
    OPTIONAL_RESPONSE_PROPERTIES,
  ),

  CreatedSubscription: responseObject<StoredView & { hmac_secret: string }>(
    'A new webhook with its secret, which no other response shows.',
    {
      ...RESPONSE_PROPERTIES,
      hmac_secret: newSecret(
        'Secret of the webhook. Store it: a receiver verifies deliveries with it, and it is not shown again. Its whole text is the key of the signature in `Authorization`.',
      ),
    },
    OPTIONAL_RESPONSE_PROPERTIES,
  ),

  RotatedSubscription: responseObject<StoredView & { hmac_secret: string }>(
    'A webhook with its new secret, which no other response shows.',
    {
      ...RESPONSE_PROPERTIES,
      hmac_secret: newSecret('The new secret of the webhook. It is not shown again.'),
    },
    OPTIONAL_RESPONSE_PROPERTIES,
  ),

  Health: HEALTH,

  ...ROTATION_SCHEMAS,

  ...SIGNATURE_KEY_SCHEMAS,

  SubscriptionFields: REQUEST_FIELDS,

  DeletedSubscription: responseObject<{ id: string }>('The deleted subscription.', {
    id: prefixedId('wsu_', 'Id of the deleted subscription.'),
  }),
};

export function newSecret(description: string): Schema {
  return { type: 'string', pattern: '^whsec_[0-9A-Za-z+/]{43}=$', description };
}
