import { Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { describeProblem } from '../api/api-error.ts';
import { matchCountQuery } from '../api/filters.ts';
import { describeMatchCount, describeRateLimit } from './match-wording.ts';
import type { WebhookValues } from './webhook-values.ts';

const DEBOUNCE_MS = 300;

interface MatchCountProps {
  accountId: number;
  values: WebhookValues;
}

/** "412 of 2,310 events of the last 7 days match." */
export function MatchCount({ accountId, values }: MatchCountProps) {
  const { data, error } = useMatchCount(accountId, values);
  return (
    <Text size="sm" role="status">
      {values.eventTypes.length === 0
        ? 'Choose events to see how many match.'
        : error !== null
          ? `The matching events could not be counted. ${describeProblem(error)}`
          : data === undefined
            ? 'Counting the events that match…'
            : describeMatchCount(data)}
    </Text>
  );
}

/** Compares the rate limit with what the recent events need; nothing without a rate limit. */
export function RateLimitNote({ accountId, values }: MatchCountProps) {
  const { data } = useMatchCount(accountId, values);
  const rateLimit = Number(values.rateLimit);
  const note = rateLimit > 0 && data !== undefined ? describeRateLimit(data, rateLimit) : null;
  if (note === null) return null;
  return (
    <Text size="sm" role="status">
      {note}
    </Text>
  );
}

function useMatchCount(accountId: number, values: WebhookValues) {
  const { eventTypes, jobIds, runStatuses, environmentIds, projectIds } = values;
  const selection = { eventTypes, jobIds, runStatuses, environmentIds, projectIds };
  const [debounced] = useDebouncedValue(JSON.stringify(selection), DEBOUNCE_MS);
  return useQuery(matchCountQuery(accountId, JSON.parse(debounced) as typeof selection));
}
