import type { Paths } from '../http/openapi/field-schemas.ts';
import { parameter, queryParameter } from '../http/openapi/parameters.ts';
import { operationResponses } from '../http/openapi/responses.ts';

/** Paths of the OpenAPI document; see docs/contract.md#changes-as-they-happen. */
export const changesPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/changes': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listenToChanges',
      tags: ['Webhooks'],
      summary: 'Stream changes',
      description:
        'A stream of server-sent events. Each `changed` has `{"subscription_ids": [...]}`: the webhooks that were written or attempted since the last event; the usual calls have the data. A change is reported within some two seconds. The stream ends after fifteen minutes at the latest: connect again, and treat all webhooks as changed.',
      parameters: [
        queryParameter(
          'subscription_id',
          'Also reports changes in the log of this webhook, including deliveries that wait without an attempt.',
          {
            type: 'string',
            pattern: '^wsu_[0-9A-Za-z]{27}$',
          },
        ),
      ],
      responses: operationResponses(
        'account',
        {
          200: {
            description: 'The stream.',
            content: {
              'text/event-stream': {
                schema: { type: 'string' },
                example: 'event: changed\ndata: {"subscription_ids":["wsu_2rU0ZTYbOBXVEDmMJ8jLRfM9n1x"]}\n\n',
              },
            },
          },
        },
        [400],
      ),
    },
  },
};
