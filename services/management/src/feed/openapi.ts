import {
  count,
  type Paths,
  type Response,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { parameter, queryParameter } from '../http/openapi/parameters.ts';
import { CURSOR_EXAMPLE, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { PAYLOAD_EXAMPLES } from '../http/openapi/webhooks.ts';
import { LIMIT_MAX } from '../http/query-parameters.ts';
import { SCANNED_MAX } from './page.ts';
import { FEED_WAIT_SECONDS_MAX, type FeedExtra, type FeedGone, LATEST } from './routes.ts';

const CURSOR: Schema = text('Value of `after` for the next page. An opaque text.', { minLength: 1 });
const GONE: Response = {
  description:
    'The cursor is not of this feed, has expired, or is of a time that a restore has undone. `next_after` continues without leaving out an event that the log still has; events may repeat.',
  content: {
    'application/json': {
      schema: schemaRef('FeedGone'),
      example: {
        status: {
          code: 410,
          is_success: false,
          user_message:
            'The cursor has expired: events after it may no longer be in the log. Continue with the next_after of this response; events may repeat.',
          developer_message: '',
        },
        data: { next_after: CURSOR_EXAMPLE },
      },
    },
  },
};

/** Schemas of the OpenAPI document; see docs/contract.md#feed. */
export const feedSchemas: Record<string, Schema> = {
  FeedExtra: responseObject<FeedExtra>('Position of this page in the feed.', {
    pagination: responseObject<FeedExtra['pagination']>('How to request the next page.', {
      count: count('Number of payloads in this response.'),
      next_after: CURSOR,
      has_more: {
        type: 'boolean',
        description: 'Whether the next page can be read at once; it may be empty.',
      },
    }),
    filters: responseObject<FeedExtra['filters']>('The filters that were applied.', {
      limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'The requested page size.' },
    }),
  }),

  FeedGone: responseObject<{ status: object; data: FeedGone }>('A cursor cannot be used any more.', {
    status: schemaRef('FailureStatus'),
    data: responseObject<FeedGone>('Where to continue.', { next_after: CURSOR }),
  }),
};

/** Paths of the OpenAPI document; see docs/contract.md#feed. */
export const feedPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/events': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'listFeedEvents',
      tags: ['Webhooks'],
      summary: 'Read the events of a webhook',
      description: `The payloads of the events that match the current webhook, at least once and in one order, for consumers that cannot receive requests, or that reconcile. Store \`next_after\` once the page is processed, and pass it as \`after\`. A page reads at most ${SCANNED_MAX} events of the account, so it may be empty with a new cursor. The webhook must be active; it may have an empty \`client_url\`.`,
      parameters: [
        queryParameter(
          'after',
          `\`next_after\` of the previous page; empty: from the oldest event in the log; \`${LATEST}\`: from now on.`,
          { type: 'string', examples: [CURSOR_EXAMPLE] },
        ),
        queryParameter('wait', 'Seconds to wait for an event if there is none.', {
          type: 'integer',
          minimum: 0,
          maximum: FEED_WAIT_SECONDS_MAX,
          default: 0,
        }),
        parameter('Limit'),
      ],
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'A page of payloads.',
            schemaRef('DeliveryPayload'),
            PAYLOAD_EXAMPLES['job.run.completed'],
            'feed',
          ),
          409: failureWithReason(
            409,
            'The webhook is inactive.',
            'The webhook is inactive: activate it to read its feed.',
          ),
          410: GONE,
        },
        [400],
      ),
    },
  },
};
