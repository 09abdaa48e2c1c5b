import type { StatisticsBucket, StatisticsCounts, StatisticsView } from '../../../domain/statistics-view.ts';
import { count, microsTime, orNull } from '../field-schemas.ts';
import { answerObject, type PropertiesOf, schemaRef } from '../object-schemas.ts';
import type { Schema } from '../openapi-types.ts';

const counts: PropertiesOf<StatisticsCounts> = {
  delivered_count: count('Those that were delivered.'),
  failed_count: count('Those whose last attempt failed.'),
  pending_count: count('Those that have attempts left.'),
  cancelled_count: count('Those that were cancelled.'),
  attempt_count: count('Attempts made for them so far.'),
  p50_ms: orNull(
    count(
      'How long the endpoint took, in milliseconds: the median of the latest attempt of each. Attempts that did not reach it (502) are left out, one that timed out counts with the time it was given. Null when none is left.',
    ),
  ),
  p95_ms: orNull(count('As `p50_ms`: 95 of 100 were as fast or faster.')),
};

export const statisticsSchemas: Record<string, Schema> = {
  StatisticsCounts: answerObject<StatisticsCounts>(
    'What has become of the deliveries of a span of time.',
    counts,
  ),
  StatisticsBucket: answerObject<StatisticsBucket>('An hour.', {
    hour_start: microsTime('Beginning of the hour, in UTC.'),
    ...counts,
  }),
  Statistics: answerObject<StatisticsView>('How deliveries went, by the hour in which they were created.', {
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
};
