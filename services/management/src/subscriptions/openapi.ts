import {
  type Operation,
  type Paths,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
} from '../http/openapi/field-schemas.ts';
import {
  PAGE,
  parameter,
  queryParameter,
  requestBody,
  searchParameter,
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
import { ROTATION_SCHEMAS, type SecretRotation } from './rotation.ts';
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

const ROTATION_EXAMPLE: SecretRotation = { started_at: '1795168900000000', ends_at: '1795255300000000' };

const ROTATED_SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...SUBSCRIPTION_EXAMPLE,
  secret_rotation: ROTATION_EXAMPLE,
  hmac_secret: 'whsec_OTg3NjU0MzIxMDk4NzY1NDMyMTA5ODc2NTQzMjEwOTg=',
};

const DELETED_EXAMPLE = { id: NEW_SUBSCRIPTION.id };

export const WEBHOOK_WRITERS =
  'Needs, on Enterprise, one of the permission sets `account_admin`, `admin` and `developer`; on Team, the Developer licence of a user, or `account_admin` or `member` of a service token.';

const NAME = `(${INCLUDABLE_FIELDS.join('|')})`;
const INCLUDE = queryParameter(
  'include',
  'What to answer beside the rest, names with commas between them. `error_code`: why the latest attempt failed; `health`: how the endpoint does.',
  { type: 'string', pattern: `^${NAME}(,${NAME})*$` },
);

/** A delivery of a subscription to its endpoint; the events are described in `webhooks` of the document. */
const DELIVERY: Operation = {
  operationId: 'onDelivery',
  tags: ['Received by endpoints'],
  summary: 'An event is delivered',
  description:
    'Sent for every event that the subscription fires for, signed, and tried again until it is answered with 2xx. Each kind of event, with the headers, is described among the webhooks of this document.',
  security: [{ deliverySignature: [] }],
  requestBody: {
    description: 'The same bytes in every attempt.',
    required: true,
    content: { 'application/json': { schema: schemaRef('DeliveryPayload') } },
  },
  responses: {
    '2XX': { description: 'Answered in time: it is delivered.' },
    '4XX': { description: 'Refused: it is tried again, as after any other answer.' },
  },
};

/** See docs/contract.md#subscriptions. */
export const subscriptionPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscriptions': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listSubscriptions',
      tags,
      summary: 'List the subscriptions of an account',
      description: 'Newest first, unless another order is asked for.',
      parameters: [
        searchParameter('in their name, their endpoint or their description, or as their whole id'),
        queryParameter('active', 'Only those that are active, or only those that are not.', {
          type: 'boolean',
        }),
        queryParameter('failing', 'Only those whose latest attempt failed, or only those whose did not.', {
          type: 'boolean',
        }),
        queryParameter(
          'order_by',
          'What comes first: the newest, the first by name, the last to have an attempt, or the last to begin to fail. Equal ones are newest first.',
          { type: 'string', enum: SUBSCRIPTION_ORDERS, default: 'created_at' },
        ),
        INCLUDE,
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: withIdempotencyKey({
      operationId: 'createSubscription',
      tags,
      summary: 'Create a subscription',
      description: `The answer is the only one that has \`hmac_secret\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('SubscriptionFields', 'The new webhook.', SUBSCRIPTION_FIELDS_EXAMPLE),
      responses: operationResponses(
        'account',
        {
          201: success(201, 'It exists.', schemaRef('CreatedSubscription'), CREATED_SUBSCRIPTION_EXAMPLE),
          409: failureWithReason(
            409,
            'The account has as many webhooks as it may have.',
            'The account has 1000 webhooks, as many as it may have.',
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
      description: 'With what became of its latest attempt. Its secret is never told again.',
      parameters: [INCLUDE],
      responses: operationResponses(
        'account',
        { 200: success(200, 'It.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE) },
        [400],
      ),
    },
    put: {
      operationId: 'updateSubscription',
      tags,
      summary: 'Replace what a subscription says',
      parameters: [parameter('IfMatch')],
      description: `What is left out gets its default, but \`active\`, \`signature_header\` and \`headers\` keep their values. Deliveries already made stay as they are; attempts to come use the new \`client_url\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('SubscriptionFields', 'All of it.', SUBSCRIPTION_FIELDS_EXAMPLE),
      responses: operationResponses(
        'account',
        {
          200: success(200, 'As it is now.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE),
          412: failure(412),
          409: failureWithReason(
            409,
            'Somebody else kept changing it at the same time.',
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
      description: `Nothing more is sent to it, and its log of deliveries is gone from the API at once. ${WEBHOOK_WRITERS}`,
      responses: operationResponses('account', {
        200: success(200, 'It is gone.', schemaRef('DeletedSubscription'), DELETED_EXAMPLE, 'deleted'),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/rotate-secret': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'rotateSecret',
      tags,
      summary: 'Rotate the secret',
      description: `The answer is the only one that has the new \`hmac_secret\`. For \`overlap_hours\`, \`Authorization\` stays the signature by the old secret, and \`webhook-signature\` carries one by each; then the new one takes over and the old one is erased. A receiver that accepts either refuses nothing at any time. With 0 hours the new one takes over at once. ${WEBHOOK_WRITERS}`,
      requestBody: {
        ...requestBody('RotationRequest', 'How long both are in use. May be left out.', {
          overlap_hours: 24,
        }),
        required: false,
      },
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'The rotation has begun; with 0 hours it has ended too.',
            schemaRef('RotatedSubscription'),
            ROTATED_SUBSCRIPTION_EXAMPLE,
          ),
          409: failureWithReason(
            409,
            'A rotation is under way: it is to be finished first. Of two at once, one gets this.',
            'A rotation of the secret is under way, or has just begun: finish it before the next.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/finish-rotation': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'finishRotation',
      tags,
      summary: 'Finish a rotation of the secret before its time',
      description: `Every attempt from now on is signed with the new secret alone; the old one is erased. ${WEBHOOK_WRITERS}`,
      responses: operationResponses('account', {
        200: success(200, 'The new secret has taken over.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE),
        409: failureWithReason(
          409,
          'No rotation is under way, or its end has come by itself.',
          'No rotation of the secret is under way.',
        ),
      }),
    }),
  },
};

export const subscriptionSchemas: Record<string, Schema> = {
  Subscription: responseObject<StoredView>(
    'A webhook: which events of which jobs go to which endpoint.',
    RESPONSE_PROPERTIES,
    OPTIONAL_RESPONSE_PROPERTIES,
  ),

  CreatedSubscription: responseObject<StoredView & { hmac_secret: string }>(
    'A new webhook, with the secret that no other answer shows.',
    {
      ...RESPONSE_PROPERTIES,
      hmac_secret: newSecret(
        'Secret of the webhook. Keep it: a receiver checks deliveries with it, and it is not shown again. The whole text is the key of the signature in `Authorization`.',
      ),
    },
    OPTIONAL_RESPONSE_PROPERTIES,
  ),

  RotatedSubscription: responseObject<StoredView & { hmac_secret: string }>(
    'A webhook with its new secret, which no other answer shows.',
    {
      ...RESPONSE_PROPERTIES,
      hmac_secret: newSecret('The new secret of the webhook. It is not shown again.'),
    },
    OPTIONAL_RESPONSE_PROPERTIES,
  ),

  Health: HEALTH,

  ...ROTATION_SCHEMAS,

  SubscriptionFields: REQUEST_FIELDS,

  DeletedSubscription: responseObject<{ id: string }>('What was deleted.', {
    id: prefixedId('wsu_', 'Id of the subscription that is gone.'),
  }),
};

export function newSecret(description: string): Schema {
  return { type: 'string', pattern: '^whsec_[0-9A-Za-z+/]{43}=$', description };
}
