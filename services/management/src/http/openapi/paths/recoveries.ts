import { DONE_RECOVERY_EXAMPLE, RECOVERY_EXAMPLE, RECOVERY_REQUEST_EXAMPLE } from '../examples.ts';
import { keyed } from '../keyed.ts';
import { schemaRef } from '../object-schemas.ts';
import type { Paths } from '../openapi-types.ts';
import { parameter } from '../parameters.ts';
import { requestBody } from '../request-body.ts';
import { answers, failureBecause, OF_A_BODY, success } from '../responses.ts';
import { WEBHOOK_WRITERS } from './subscriptions.ts';

const tags = ['Deliveries'];

export const recoveryPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recover': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: keyed({
      operationId: 'recoverSubscription',
      tags,
      summary: 'Deliver again what failed in a window',
      description: `Each delivery that matches is delivered again as \`redeliver\` would do it, some fifty a second, the oldest first, so that the endpoint is not flooded. What fails again stays failed. One recovery of a webhook runs at a time. ${WEBHOOK_WRITERS}`,
      requestBody: requestBody('RecoveryRequest', 'The window.', RECOVERY_REQUEST_EXAMPLE),
      responses: answers(
        'account',
        {
          202: success(
            202,
            'It has begun; it is done already when nothing matches.',
            schemaRef('Recovery'),
            RECOVERY_EXAMPLE,
          ),
          409: failureBecause(
            409,
            'The webhook is inactive, or a recovery of it is running: its id is in the message.',
            `The recovery ${RECOVERY_EXAMPLE.id} of this webhook is still running.`,
          ),
        },
        OF_A_BODY,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/recovery/{recovery_id}': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('RecoveryId')],
    get: {
      operationId: 'getRecovery',
      tags,
      summary: 'See how far a recovery is',
      responses: answers('account', {
        200: success(200, 'It.', schemaRef('Recovery'), DONE_RECOVERY_EXAMPLE),
      }),
    },
  },
};
