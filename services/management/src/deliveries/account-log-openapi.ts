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
import { parameter, queryParameter, WEBHOOK_IDS } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { LIMIT_MAX } from '../http/query-parameters.ts';
import { EVENT_TYPE, SUBSCRIPTION_EXAMPLE } from '../subscriptions/openapi.ts';
import type { AccountDeliveryView } from './account-log.ts';
import { type AccountLogExtra, HISTOGRAM_DAYS_MAX } from './account-log-routes.ts';
import { BUCKETS_WANTED, type HistogramBucket, type HistogramView } from './histogram-buckets.ts';
import {
  DELIVERY_EXAMPLE,
  DELIVERY_PROPERTIES,
  DELIVERY_STATUS,
  OPTIONAL_DELIVERY_PROPERTIES,
} from './openapi.ts';
import { RUN_EVENT_STATES, type RunEventView } from './run-events.ts';

const COUNTS = {
  delivered_count: count('Delivered deliveries.'),
  failed_count: count('Failed deliveries.'),
  pending_count: count('Deliveries with attempts left.'),
  cancelled_count: count('Cancelled deliveries.'),
};

/** Schemas of the OpenAPI document; see docs/contract.md#the-log-of-an-account. */
export const accountLogSchemas: Record<string, Schema> = {
  AccountDelivery: responseObject<AccountDeliveryView>(
    'A delivery in the log of an account.',
    {
      ...DELIVERY_PROPERTIES,
      webhook_name: text('Current name of the webhook.'),
      webhook_state: {
        type: 'string',
        enum: ['active', 'inactive', 'deleted'],
        description: 'Current state of the webhook. A `deleted` webhook is not available in any other call.',
      },
    },
    OPTIONAL_DELIVERY_PROPERTIES,
  ),

  LogPageExtra: responseObject<AccountLogExtra>('Position of this page in the log.', {
    pagination: responseObject<AccountLogExtra['pagination']>('How to request the next page.', {
      count: count('Number of rows in this response.'),
      next_before: nullable(text('Value of `before` for the next page; null at the end of the log.')),
      scanned_until: nullable(
        microsTime(
          'Set when the page ended early because many deliveries had to be read: deliveries created before this time were not scanned. Otherwise null.',
        ),
      ),
    }),
    filters: responseObject<AccountLogExtra['filters']>('The filters that were applied.', {
      limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'The requested page size.' },
    }),
  }),

  Histogram: responseObject<HistogramView>('Deliveries of a time window by their time of creation.', {
    since: microsTime('Start of the window.'),
    until: microsTime('End of the window.'),
    bucket_seconds: { type: 'integer', minimum: 1, description: 'Width of a bucket.' },
    counted_since: nullable(
      microsTime(
        'Deliveries created before this time are not counted, because too many would have to be read; null if all are counted.',
      ),
    ),
    totals: responseObject<HistogramView['totals']>('Totals of all buckets.', COUNTS),
    buckets: {
      type: 'array',
      items: responseObject<HistogramBucket>('Deliveries created in one time span, by their current state.', {
        start: microsTime('Start of the span; a multiple of the width in UTC.'),
        ...COUNTS,
      }),
      description: 'Oldest first, including empty buckets.',
    },
  }),

  RunEvent: responseObject<RunEventView>('An event of a run, and whether webhooks matched it.', {
    event_type: EVENT_TYPE,
    event_id: nullable(prefixedId('wev_', 'Id of the event; null if no webhook has a delivery of it.')),
    occurred_at: microsTime('When it was matched with webhooks, otherwise the time that the run has for it.'),
    state: {
      type: 'string',
      enum: RUN_EVENT_STATES,
      description:
        '`matched`: webhooks have deliveries of it; `waiting`: it has not been matched with webhooks yet; `unmatched`: no webhook matched it; `not_reported`: the state of the run implies it, but the job runner has not reported it; `expired`: it is older than the log.',
    },
    delivery_count: count('Number of webhooks that have a delivery of it.'),
  }),
};

const FILTERS: Parameter[] = [
  queryParameter('run_id', 'Only deliveries of events of this run.', integerId('Id of the run.', 345)),
  queryParameter('event_id', 'Only deliveries of this event.', prefixedId('wev_', 'Id of the event.')),
  queryParameter(
    'subscription_id',
    'Only deliveries of these webhooks: up to 100 ids, separated by commas.',
    { ...WEBHOOK_IDS, examples: [SUBSCRIPTION_EXAMPLE.id] },
  ),
  queryParameter('job_id', 'Only deliveries of runs of this job.', integerId('Id of the job.', 12)),
  queryParameter('status', 'Only deliveries in this state.', DELIVERY_STATUS),
  queryParameter('event_type', 'Only deliveries of this event type.', EVENT_TYPE),
  queryParameter(
    'http_status_code',
    'Only deliveries whose latest attempt has this status; 0: without an attempt.',
    {
      type: 'integer',
      minimum: 0,
      maximum: 999,
    },
  ),
  queryParameter(
    'error_code',
    'Only deliveries whose latest attempt failed with this code. The codes of blocked addresses are a 400: they are `no_address`.',
    {
      type: 'string',
      pattern: '^[a-z_]{1,64}$',
      examples: ['timeout'],
    },
  ),
  ...(['min', 'max'] as const).map((end) =>
    queryParameter(
      `duration_${end}_ms`,
      `Only deliveries whose latest attempt took at ${end === 'min' ? 'least' : 'most'} this long.`,
      {
        type: 'integer',
        minimum: 0,
        maximum: 3_600_000,
      },
    ),
  ),
  queryParameter('since', `Only deliveries created at or after this time. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
  queryParameter('until', `Only deliveries created before this time. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
];

const DELETED_WEBHOOKS_TEXT = 'Deliveries of deleted webhooks are included while the log has them.';
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

/** Paths of the OpenAPI document; see docs/contract.md#the-log-of-an-account. */
export const accountLogPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/deliveries': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listAccountDeliveries',
      tags,
      summary: 'List the deliveries of all webhooks of an account',
      description: `Newest first: by the day of the event's id, then by the time of creation. ${DELETED_WEBHOOKS_TEXT} There is no total count; each page is requested with the \`next_before\` of the previous one. If filters require that rows are read, a page ends after some 50,000 of them: then \`scanned_until\` is set, and \`next_before\` continues from there.`,
      parameters: [
        ...FILTERS,
        queryParameter('before', '`next_before` of the previous page.', {
          type: 'string',
          pattern: '^\\d{4}-\\d{2}-\\d{2}\\.\\d{1,18}(\\.wdl_[0-9A-Za-z]{27})?$',
        }),
        parameter('Limit'),
      ],
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'A page of deliveries.',
            schemaRef('AccountDelivery'),
            ACCOUNT_DELIVERY_EXAMPLE,
            'log',
          ),
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
      description: `By status, in buckets of equal width, at most about a quarter more than ${BUCKETS_WANTED}. Default of \`since\`: 24 hours before \`until\`; default of \`until\`: now. The window has at most ${HISTOGRAM_DAYS_MAX} days. ${DELETED_WEBHOOKS_TEXT}`,
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
      summary: 'List the events of a run, and whether webhooks matched them',
      description:
        'In the order in which they occur in a run, including events that no webhook matched. Their deliveries are in the log of the account, by `run_id`.',
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'The events of the run.',
            { type: 'array', items: schemaRef('RunEvent'), description: 'The events in order.' },
            [RUN_EVENT_EXAMPLE],
          ),
        },
        [400],
      ),
    },
  },
};
