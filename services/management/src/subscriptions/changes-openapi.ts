import type { Paths } from '../http/openapi/field-schemas.ts';
import { parameter, queryParameter } from '../http/openapi/parameters.ts';
import { operationResponses } from '../http/openapi/responses.ts';

/** See docs/contract.md#changes-as-they-happen. */
export const changesPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/changes': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listenToChanges',
      tags: ['Webhooks'],
      summary: 'Listen to changes',
      description:
        'A stream of server-sent events. Each `changed` has `{"subscription_ids": [...]}`: the webhooks that were written, or that an attempt was made for, since the last; what is new of them is asked for as always. A change shows within some two seconds. The stream ends after fifteen minutes at the latest: connect again, and take everything for changed.',
      parameters: [
        queryParameter(
          'subscription_id',
          'Whose log is watched, too: what waits without an attempt is told as well.',
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
