import {
  count,
  integerId,
  microsTime,
  nullable,
  type Parameter,
  type Paths,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
  TIMESTAMP,
  TIMESTAMP_FORMATS,
  text,
} from '../http/openapi/field-schemas.ts';
import { parameter, queryParameter } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { LIMIT_MAX } from '../http/query-parameters.ts';
import { EVENT_TYPE, SUBSCRIPTION_EXAMPLE } from '../subscriptions/openapi.ts';
import type { AccountDeliveryView } from './account-log.ts';
import { type AccountLogExtra, HISTOGRAM_DAYS_MAX } from './account-log-routes.ts';
import { BUCKETS_WANTED, type HistogramBucket, type HistogramView } from './histogram-buckets.ts';
import { DELIVERY_EXAMPLE, DELIVERY_PROPERTIES, DELIVERY_STATUS } from './openapi.ts';
import { RUN_EVENT_STATES, type RunEventView } from './run-events.ts';

const COUNTS = {
  delivered_count: count('Delivered by now.'),
  failed_count: count('Failed.'),
  pending_count: count('With attempts left.'),
  cancelled_count: count('Cancelled.'),
};

/** See docs/contract.md#the-log-of-an-account. */
export const accountLogSchemas: Record<string, Schema> = {
  AccountDelivery: responseObject<AccountDeliveryView>('A delivery beside those of other webhooks.', {
    ...DELIVERY_PROPERTIES,
    webhook_name: text('What the webhook is called now.'),
    webhook_state: {
      type: 'string',
      enum: ['active', 'inactive', 'deleted'],
      description:
        'Whether the webhook is there and active now. One that is `deleted` answers nothing else any more.',
    },
  }),

  LogPageExtra: responseObject<AccountLogExtra>('Where in the log this page is.', {
    pagination: responseObject<AccountLogExtra['pagination']>('How to go on.', {
      count: count('How many are in this answer.'),
      next_before: nullable(
        text('Given as `before`, it leads to the next page; null at the end of the log.'),
      ),
      scanned_until: nullable(
        microsTime(
          'Set when the page ended early because many deliveries had to be read: deliveries created before this time were not scanned. Otherwise null.',
        ),
      ),
    }),
    filters: responseObject<AccountLogExtra['filters']>('What was applied.', {
      limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'How many were asked for.' },
    }),
  }),

  Histogram: responseObject<HistogramView>('Deliveries of a window by when they were created.', {
    since: microsTime('The beginning of the window.'),
    until: microsTime('Its end.'),
    bucket_seconds: { type: 'integer', minimum: 1, description: 'The width of a bucket.' },
    counted_since: nullable(
      microsTime(
        'What was created before it is not counted, because too much would have to be read; null when all is.',
      ),
    ),
    totals: responseObject<HistogramView['totals']>('Of all buckets.', COUNTS),
    buckets: {
      type: 'array',
      items: responseObject<HistogramBucket>('What was created in a span of time, as of now.', {
        start: microsTime('Its beginning; a multiple of the width in UTC.'),
        ...COUNTS,
      }),
      description: 'The oldest first, empty ones too.',
    },
  }),

  RunEvent: responseObject<RunEventView>('An event of a run, and whether webhooks matched it.', {
    event_type: EVENT_TYPE,
    event_id: nullable(prefixedId('wev_', 'The event; null when no webhook has a delivery of it.')),
    occurred_at: microsTime('When it was matched with webhooks, otherwise the time that the run has for it.'),
    state: {
      type: 'string',
      enum: RUN_EVENT_STATES,
      description:
        '`matched`: webhooks have deliveries of it; `waiting`: it has not been matched with webhooks yet; `unmatched`: no webhook matched it; `not_reported`: the state of the run implies it, but the job runner has not reported it; `expired`: it is older than the log.',
    },
    delivery_count: count('How many webhooks have a delivery of it.'),
  }),
};

const FILTERS: Parameter[] = [
  queryParameter('run_id', 'Only those that tell of this run.', integerId('Id of the run.', 345)),
  queryParameter('event_id', 'Only those of this event.', prefixedId('wev_', 'Id of the event.')),
  queryParameter(
    'subscription_id',
    'Only those of these webhooks: ids with commas between them, at most 100.',
    {
      type: 'string',
      examples: [SUBSCRIPTION_EXAMPLE.id],
    },
  ),
  queryParameter('job_id', 'Only those of runs of this job.', integerId('Id of the job.', 12)),
  queryParameter('status', 'Only those in this state.', DELIVERY_STATUS),
  queryParameter('event_type', 'Only those of this event type.', EVENT_TYPE),
  queryParameter(
    'http_status_code',
    'Only those whose latest attempt has this status; 0: before the first.',
    {
      type: 'integer',
      minimum: 0,
      maximum: 999,
    },
  ),
  queryParameter('error_code', 'Only those whose latest attempt failed so.', {
    type: 'string',
    pattern: '^[a-z_]{1,64}$',
    examples: ['timeout'],
  }),
  ...(['min', 'max'] as const).map((end) =>
    queryParameter(
      `duration_${end}_ms`,
      `Only those whose latest attempt took so long at ${end === 'min' ? 'least' : 'most'}.`,
      {
        type: 'integer',
        minimum: 0,
        maximum: 3_600_000,
      },
    ),
  ),
  queryParameter('since', `Only those created at this moment or later. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
  queryParameter('until', `Only those created before this moment. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
];

const DELETED_WEBHOOKS_TEXT =
  'Those of webhooks that were deleted since are told, too, as long as the log has them.';
const tags = ['Deliveries'];

const ACCOUNT_DELIVERY_EXAMPLE: AccountDeliveryView = {
  ...DELIVERY_EXAMPLE,
  webhook_name: SUBSCRIPTION_EXAMPLE.name,
  webhook_state: 'active',
};

const TOTALS = { delivered_count: 41, failed_count: 1, pending_count: 0, cancelled_count: 0 };
const HISTOGRAM_EXAMPLE: HistogramView = {
  since: '1795168800000000',
  until: '1795172400000000',
  bucket_seconds: 60,
  counted_since: null,
  totals: TOTALS,
  buckets: [{ start: '1795168800000000', ...TOTALS }],
};

const RUN_EVENT_EXAMPLE: RunEventView = {
  event_type: 'job.run.errored',
  event_id: DELIVERY_EXAMPLE.event_id,
  occurred_at: DELIVERY_EXAMPLE.created_at,
  state: 'matched',
  delivery_count: 22,
};

/** See docs/contract.md#the-log-of-an-account. */
export const accountLogPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/deliveries': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listAccountDeliveries',
      tags,
      summary: 'List the deliveries of all webhooks of an account',
      description: `Newest first: by the day of the event's id, in it by when the delivery was created. ${DELETED_WEBHOOKS_TEXT} There is no total count; each page is requested with the \`next_before\` of the previous one. If filters require that rows are read, a page ends after some 50,000 of them: then \`scanned_until\` is set, and \`next_before\` continues from there.`,
      parameters: [
        ...FILTERS,
        queryParameter('before', '`next_before` of the page before.', {
          type: 'string',
          pattern: '^\\d{4}-\\d{2}-\\d{2}\\.\\d{1,18}(\\.wdl_[0-9A-Za-z]{27})?$',
        }),
        parameter('Limit'),
      ],
      responses: operationResponses(
        'account',
        {
          200: success(200, 'A page of them.', schemaRef('AccountDelivery'), ACCOUNT_DELIVERY_EXAMPLE, 'log'),
        },
        [400],
      ),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/deliveries/histogram': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'getDeliveryHistogram',
      tags,
      summary: 'Count the deliveries of all webhooks of an account over time',
      description: `By status, in about ${BUCKETS_WANTED} buckets of one width. Without \`since\`, of the 24 hours before \`until\`, which is now when it is left out; at most ${HISTOGRAM_DAYS_MAX} days. ${DELETED_WEBHOOKS_TEXT}`,
      parameters: FILTERS,
      responses: operationResponses(
        'account',
        { 200: success(200, 'The counts.', schemaRef('Histogram'), HISTOGRAM_EXAMPLE) },
        [400],
      ),
    },
  },

  '/api/v3/accounts/{account_id}/webhooks/run/{run_id}/events': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    get: {
      operationId: 'listRunEvents',
      tags,
      summary: 'List the events of a run, and whether anybody heard of them',
      description:
        'In the order of a run’s life, those too that no webhook matched. Their deliveries are in the log of the account, by `run_id`.',
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'They.',
            { type: 'array', items: schemaRef('RunEvent'), description: 'In order.' },
            [RUN_EVENT_EXAMPLE],
          ),
        },
        [400],
      ),
    },
  },
};
