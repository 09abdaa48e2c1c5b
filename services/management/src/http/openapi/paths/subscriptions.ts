import {
  CREATED_SUBSCRIPTION_EXAMPLE,
  DELETED_EXAMPLE,
  SUBSCRIPTION_EXAMPLE,
  SUBSCRIPTION_FIELDS_EXAMPLE,
  VERIFICATION_EXAMPLE,
} from '../examples.ts';
import { keyed } from '../keyed.ts';
import { schemaRef } from '../object-schemas.ts';
import type { Paths } from '../openapi-types.ts';
import { inQuery, PAGE, parameter, searchParameter } from '../parameters.ts';
import { requestBody } from '../request-body.ts';
import { answers, OF_A_BODY, success } from '../responses.ts';

const tags = ['Webhooks'];

export const WEBHOOK_WRITERS =
  'Needs, on Enterprise, one of the permission sets `account_admin`, `admin` and `developer`; on Team, the Developer licence of a user, or `account_admin` or `member` of a service token.';

/** Spec, section 4. */
export const subscriptionPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscriptions': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listSubscriptions',
      tags,
      summary: 'List the subscriptions of an account',
      description: 'Newest first.',
      parameters: [
        searchParameter('in their name, their endpoint or their description'),
        inQuery('active', 'Only those that are active, or only those that are not.', { type: 'boolean' }),
        ...PAGE,
      ],
      responses: answers(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE, 'list') },
        [400],
      ),
    },
    post: keyed({
      operationId: 'createSubscription',
      tags,
      summary: 'Create a subscription',
      description: `The answer is the only one that has \`hmac_secret\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('SubscriptionFields', 'The new webhook.', SUBSCRIPTION_FIELDS_EXAMPLE),
      responses: answers(
        'account',
        {
          201: success(201, 'It exists.', schemaRef('CreatedSubscription'), CREATED_SUBSCRIPTION_EXAMPLE),
        },
        OF_A_BODY,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'getSubscription',
      tags,
      summary: 'Get a subscription',
      responses: answers('account', {
        200: success(200, 'It.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE),
      }),
    },
    put: {
      operationId: 'updateSubscription',
      tags,
      summary: 'Replace what a subscription says',
      description: `What is left out gets its default, but \`active\` keeps its value. Deliveries already made stay as they are; attempts to come use the new \`client_url\`. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('SubscriptionFields', 'All of it.', SUBSCRIPTION_FIELDS_EXAMPLE),
      responses: answers(
        'account',
        { 200: success(200, 'As it is now.', schemaRef('Subscription'), SUBSCRIPTION_EXAMPLE) },
        OF_A_BODY,
      ),
    },
    delete: {
      operationId: 'deleteSubscription',
      tags,
      summary: 'Delete a subscription',
      description: `Nothing more is sent to it, and its log of deliveries is gone from the API at once. ${WEBHOOK_WRITERS}`,
      responses: answers('account', {
        200: success(200, 'It is gone.', schemaRef('DeletedSubscription'), DELETED_EXAMPLE, 'deleted'),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/test': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'testSubscription',
      tags,
      summary: 'Send a signed sample to the endpoint',
      description: `Active or not, and without a trace: no entry in the log, no new status. How the endpoint took it is the answer, so a failure of the endpoint is a 200 too. ${WEBHOOK_WRITERS}`,
      responses: answers('account', {
        200: success(200, 'How it went.', schemaRef('Verification'), VERIFICATION_EXAMPLE),
      }),
    },
  },
};
