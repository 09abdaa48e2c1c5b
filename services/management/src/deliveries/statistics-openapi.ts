import {
  count,
  microsTime,
  nullable,
  type Paths,
  type PropertiesOf,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
} from '../http/openapi/field-schemas.ts';
import { parameter, queryParameter, WEBHOOK_IDS } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import type { RatesView } from './rates.ts';
import {
  STATISTICS_HOURS_DEFAULT,
  STATISTICS_HOURS_MAX,
  type StatisticsBucket,
  type StatisticsCounts,
  type StatisticsView,
} from './statistics.ts';

const STATISTICS_COUNTS = {
  delivered_count: 41,
  failed_count: 1,
  pending_count: 0,
  cancelled_count: 0,
  attempt_count: 47,
  p50_ms: 95,
  p95_ms: 480,
};

const STATISTICS_EXAMPLE: StatisticsView = {
  since: '1795168800000000',
  until: '1795170600000000',
  totals: STATISTICS_COUNTS,
  buckets: [{ hour_start: '1795168800000000', ...STATISTICS_COUNTS }],
};

const RATES_EXAMPLE: RatesView = {
  subscription_id: 'wsu_3MMmRIeb7hwtfgePeQ9Hc50jDdn',
  since: '1795168800000000',
  delivery_count: 84,
  failed_count: 1,
  delivery_counts: [42, 42],
  failed_counts: [1, 0],
};

const HOURS = queryParameter('hours', 'Number of hours, including the current one.', {
  type: 'integer',
  minimum: 1,
  maximum: STATISTICS_HOURS_MAX,
  default: STATISTICS_HOURS_DEFAULT,
});

/** Paths of the OpenAPI document; see docs/contract.md#statistics. */
export const statisticsPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/statistics': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listRates',
      tags: ['Deliveries'],
      summary: 'Get the number of deliveries and failures of several webhooks, by hour',
      description: 'By id; unknown webhooks are omitted.',
      parameters: [
        {
          ...queryParameter('subscription_id', 'Ids of up to 100 webhooks, separated by commas.', {
            ...WEBHOOK_IDS,
            examples: [RATES_EXAMPLE.subscription_id],
          }),
          required: true,
        },
        HOURS,
      ],
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'One entry per webhook.',
            { type: 'array', items: schemaRef('Rates'), description: 'Sorted by id.' },
            [RATES_EXAMPLE],
          ),
        },
        [400],
      ),
    },
  },
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/statistics': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    get: {
      operationId: 'getStatistics',
      tags: ['Deliveries'],
      summary: 'Get statistics of deliveries, by hour',
      description:
        'Counts the deliveries created in the last hours by their current state. A delivery whose event id is more than a day older than the first hour is not counted.',
      parameters: [HOURS],
      responses: operationResponses(
        'account',
        { 200: success(200, 'The statistics.', schemaRef('Statistics'), STATISTICS_EXAMPLE) },
        [400],
      ),
    },
  },
};

const hourlyCounts = (description: string): Schema => ({
  type: 'array',
  items: { type: 'integer', minimum: 0 },
  minItems: 1,
  description,
});

const counts: PropertiesOf<StatisticsCounts> = {
  delivered_count: count('Delivered deliveries.'),
  failed_count: count('Deliveries whose last attempt failed.'),
  pending_count: count('Deliveries with attempts left.'),
  cancelled_count: count('Cancelled deliveries.'),
  attempt_count: count('Number of attempts of these deliveries so far.'),
  p50_ms: nullable(
    count(
      'Median duration of the latest attempts in milliseconds. Attempts that did not reach the endpoint (a 502 of the service) are not counted; a timeout counts with the time limit. Null if none is left.',
    ),
  ),
  p95_ms: nullable(count('The 95th percentile, as `p50_ms`.')),
};

export const statisticsSchemas: Record<string, Schema> = {
  StatisticsCounts: responseObject<StatisticsCounts>('Results of the deliveries of a time span.', counts),
  StatisticsBucket: responseObject<StatisticsBucket>('Statistics of one hour.', {
    hour_start: microsTime('Start of the hour, in UTC.'),
    ...counts,
  }),
  Statistics: responseObject<StatisticsView>('Statistics of deliveries by the hour of their creation.', {
    since: microsTime('Start of the first hour.'),
    until: microsTime('Time of the statistics, in the last hour.'),
    totals: schemaRef('StatisticsCounts', 'Totals of all hours.'),
    buckets: {
      type: 'array',
      items: schemaRef('StatisticsBucket'),
      minItems: 1,
      description: 'All hours, oldest first, including those without deliveries.',
    },
  }),
  Rates: responseObject<RatesView>('Deliveries of a webhook by the hour of their creation.', {
    subscription_id: prefixedId('wsu_', 'The webhook.'),
    since: microsTime('Start of the first hour.'),
    delivery_count: count('Number of deliveries.'),
    failed_count: count('Deliveries that are failed now.'),
    delivery_counts: hourlyCounts('Number of deliveries per hour, oldest first.'),
    failed_counts: hourlyCounts('Number of them that are failed now.'),
  }),
};
