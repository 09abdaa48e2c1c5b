import { SUBSCRIPTION_LIMITS } from '@runhook/contract';
import {
  type Paths,
  requestObject,
  requiredName,
  type Schema,
  schemaRef,
} from '../http/openapi/field-schemas.ts';
import { parameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { CREATED_SUBSCRIPTION_EXAMPLE, WEBHOOK_WRITERS } from './openapi.ts';

/** Paths of the OpenAPI document; see docs/contract.md#subscriptions. */
export const duplicatePaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/duplicate': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'duplicateSubscription',
      tags: ['Webhooks'],
      summary: 'Duplicate a subscription',
      description: `Creates an inactive copy with a new secret, which only this response has, and a new key pair if the original has one. Values of \`headers\` and \`format_options\` are copied. ${WEBHOOK_WRITERS}`,
      requestBody: {
        ...requestBody('DuplicateRequest', 'Name of the copy. Optional.', {
          name: 'Runs to the pager (staging)',
        }),
        required: false,
      },
      responses: operationResponses(
        'account',
        {
          201: success(201, 'The copy was created.', schemaRef('CreatedSubscription'), {
            ...CREATED_SUBSCRIPTION_EXAMPLE,
            name: 'Runs to the pager (staging)',
            active: false,
          }),
          409: failureWithReason(
            409,
            'The account has the maximum number of webhooks, or a dispatcher of an older release is running.',
            'The account has 1000 webhooks, the maximum.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },
};

export const duplicateSchemas: Record<string, Schema> = {
  DuplicateRequest: requestObject<{ name?: string }>(
    'Options of a copy.',
    {
      name: {
        ...requiredName(SUBSCRIPTION_LIMITS.nameCharactersMax, ''),
        type: ['string', 'null'],
        description: 'Name of the copy. Default: the name of the original with the suffix ` (copy)`.',
      },
    },
    [],
  ),
};
