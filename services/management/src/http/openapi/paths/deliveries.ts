import { TOTAL_COUNT_MAX } from '../../../data/delivery-list.ts';
import { STATISTICS_HOURS_DEFAULT, STATISTICS_HOURS_MAX } from '../../../domain/statistics-view.ts';
import {
  DELIVERY_EXAMPLE,
  DELIVERY_WITH_ATTEMPTS_EXAMPLE,
  PENDING_DELIVERY_EXAMPLE,
  STATISTICS_EXAMPLE,
} from '../examples.ts';
import { integerId } from '../field-schemas.ts';
import { keyed } from '../keyed.ts';
import { schemaRef } from '../object-schemas.ts';
import type { Paths } from '../openapi-types.ts';
import { inQuery, PAGE, parameter } from '../parameters.ts';
import { answers, failureBecause, OF_A_BODY, success } from '../responses.ts';
import { DELIVERY_STATUS } from '../schemas/deliveries.ts';
import { MOMENT, MOMENT_FORMS } from '../schemas/moment.ts';
import { EVENT_TYPE } from '../schemas/subscriptions.ts';
import { WEBHOOK_WRITERS } from './subscriptions.ts';

const tags = ['Deliveries'];

/** DESIGN, sections 4 ("Deliveries API") and 7 ("Deliveries"). */
export const deliveryPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/deliveries': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'listDeliveries',
      tags,
      summary: 'List the deliveries of a subscription',
      description: `Newest first, as long as the log keeps them: 30 days unless the operator set another time. \`total_count\` stops at ${TOTAL_COUNT_MAX}.`,
      parameters: [
        inQuery('status', 'Only those in this state.', DELIVERY_STATUS),
        inQuery('event_type', 'Only those of this event type.', EVENT_TYPE),
        inQuery('run_id', 'Only those that tell of this run.', integerId('Id of the run.', 345)),
        inQuery(
          'since',
          `Only those created at this moment or later; one whose event id is older than a day then is listed under the day of that id. ${MOMENT_FORMS}`,
          MOMENT,
        ),
        inQuery('until', `Only those created before this moment. ${MOMENT_FORMS}`, MOMENT),
        ...PAGE,
      ],
      responses: answers(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('Delivery'), DELIVERY_EXAMPLE, 'list') },
        [400],
      ),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/statistics': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'getStatistics',
      tags,
      summary: 'See how deliveries went, hour by hour',
      description:
        'Of the deliveries that were created in the hours up to now, by their states as they are now. One whose event id is more than a day older than the first hour is not counted.',
      parameters: [
        inQuery('hours', 'How many hours, of which the last one is not over yet.', {
          type: 'integer',
          minimum: 1,
          maximum: STATISTICS_HOURS_MAX,
          default: STATISTICS_HOURS_DEFAULT,
        }),
      ],
      responses: answers(
        'account',
        { 200: success(200, 'The numbers.', schemaRef('Statistics'), STATISTICS_EXAMPLE) },
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
      responses: answers('account', {
        200: success(200, 'It.', schemaRef('DeliveryWithAttempts'), DELIVERY_WITH_ATTEMPTS_EXAMPLE),
      }),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/delivery/{delivery_id}/redeliver': {
    parameters: [parameter('AccountId'), parameter('WebhookId'), parameter('DeliveryId')],
    post: keyed({
      operationId: 'redeliver',
      tags,
      summary: 'Deliver again',
      description: `The same delivery with the same body: an attempt at once, and its retries. Needs no body. ${WEBHOOK_WRITERS}`,
      responses: answers(
        'account',
        {
          202: success(202, 'It is on its way.', schemaRef('Delivery'), PENDING_DELIVERY_EXAMPLE),
          409: failureBecause(
            409,
            'The delivery is still pending, or its webhook is inactive.',
            'The delivery is still pending.',
          ),
        },
        OF_A_BODY,
      ),
    }),
  },
};
