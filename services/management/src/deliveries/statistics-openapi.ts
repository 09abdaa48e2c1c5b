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
import { parameter, queryParameter } from '../http/openapi/parameters.ts';
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

const HOURS = queryParameter('hours', 'How many hours, of which the last one is not over yet.', {
  type: 'integer',
  minimum: 1,
  maximum: STATISTICS_HOURS_MAX,
  default: STATISTICS_HOURS_DEFAULT,
});

/** See docs/contract.md#statistics. */
export const statisticsPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/statistics': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listRates',
      tags: ['Deliveries'],
      summary: 'See how many deliveries of several webhooks there were, and failed, hour by hour',
      description: 'By id; webhooks that the account does not have are left out.',
      parameters: [
        {
          ...queryParameter('subscription_id', 'Ids of webhooks, up to 100 with commas between them.', {
            type: 'string',
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
            'One for each webhook.',
            { type: 'array', items: schemaRef('Rates'), description: 'By id.' },
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
      summary: 'See how deliveries went, hour by hour',
      description:
        'Of the deliveries that were created in the hours up to now, by their states as they are now. One whose event id is more than a day older than the first hour is not counted.',
      parameters: [HOURS],
      responses: operationResponses(
        'account',
        { 200: success(200, 'The numbers.', schemaRef('Statistics'), STATISTICS_EXAMPLE) },
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
  delivered_count: count('Those that were delivered.'),
  failed_count: count('Those whose last attempt failed.'),
  pending_count: count('Those that have attempts left.'),
  cancelled_count: count('Those that were cancelled.'),
  attempt_count: count('Attempts made for them so far.'),
  p50_ms: nullable(
    count(
      'How long the endpoint took, in milliseconds: the median of the latest attempt of each. Attempts that did not reach it (a 502 that is not its own) are left out, one that timed out counts with the time it was given. Null when none is left.',
    ),
  ),
  p95_ms: nullable(count('As `p50_ms`: 95 of 100 were as fast or faster.')),
};

export const statisticsSchemas: Record<string, Schema> = {
  StatisticsCounts: responseObject<StatisticsCounts>(
    'What has become of the deliveries of a span of time.',
    counts,
  ),
  StatisticsBucket: responseObject<StatisticsBucket>('An hour.', {
    hour_start: microsTime('Beginning of the hour, in UTC.'),
    ...counts,
  }),
  Statistics: responseObject<StatisticsView>('How deliveries went, by the hour in which they were created.', {
    since: microsTime('Beginning of the first hour.'),
    until: microsTime('The moment that the numbers are of, in the last hour.'),
    totals: schemaRef('StatisticsCounts', 'All hours together.'),
    buckets: {
      type: 'array',
      items: schemaRef('StatisticsBucket'),
      minItems: 1,
      description: 'Every hour, the oldest first; those without deliveries too.',
    },
  }),
  Rates: responseObject<RatesView>('How many deliveries of a webhook were created in each hour.', {
    subscription_id: prefixedId('wsu_', 'The webhook.'),
    since: microsTime('Beginning of the first hour.'),
    delivery_count: count('All of them.'),
    failed_count: count('Those of them that are failed now.'),
    delivery_counts: hourlyCounts('How many were created in each hour, the oldest first.'),
    failed_counts: hourlyCounts('How many of these are failed now.'),
  }),
};
