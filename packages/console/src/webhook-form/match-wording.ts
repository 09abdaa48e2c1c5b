import type { MatchPreview } from '../api/types.ts';
import { formatShortLocalTime, parseTime } from '../wording/time.ts';

type Counts = Pick<MatchPreview, 'matched_count' | 'total_count' | 'since' | 'is_complete'>;

/** "412 of 2,310 events of the last 7 days match." */
export function describeMatchCount({ matched_count, total_count, since, is_complete }: Counts): string {
  const period = describePeriod({ since, is_complete });
  if (total_count === 0) return `There were no events in the last 7 days.`;
  const verb = matched_count === 1 ? 'matches' : 'match';
  return `${matched_count.toLocaleString()} of ${total_count.toLocaleString()} events ${period} ${verb}.`;
}

/**
 * Explains what a rate limit means for the recent events; null without matching events.
 * @param rateLimit requests per second
 */
export function describeRateLimit(
  {
    lowest_rate_limit,
    since,
    is_complete,
  }: Pick<MatchPreview, 'lowest_rate_limit' | 'since' | 'is_complete'>,
  rateLimit: number,
): string | null {
  if (lowest_rate_limit === 0) return null;
  const period = describePeriod({ since, is_complete });
  const rate = `${lowest_rate_limit} per second`;
  return rateLimit < lowest_rate_limit
    ? `With the matching events ${period}, deliveries would have piled up until the account’s limit of waiting deliveries, and later ones would have been cancelled. These events need at least ${rate}, and more with retries.`
    : `The matching events ${period} need at least ${rate}, and more with retries. Below that, deliveries would pile up until the account’s limit of waiting deliveries.`;
}

function describePeriod({ since, is_complete }: Pick<MatchPreview, 'since' | 'is_complete'>): string {
  const start = parseTime(since);
  return is_complete || start === null ? 'of the last 7 days' : `since ${formatShortLocalTime(start)}`;
}
