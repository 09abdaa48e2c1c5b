import type { MatchPreview } from '../api/types.ts';
import { formatShortLocalTime, parseTime } from '../wording/time.ts';

type Counts = Pick<MatchPreview, 'matched_count' | 'total_count' | 'since' | 'is_complete'>;

/** "412 of 2,310 events of the last 7 days match." */
export function describeMatchCount({ matched_count, total_count, since, is_complete }: Counts): string {
  const start = parseTime(since);
  const period =
    is_complete || start === null ? 'of the last 7 days' : `since ${formatShortLocalTime(start)}`;
  if (total_count === 0) return `There were no events in the last 7 days.`;
  const verb = matched_count === 1 ? 'matches' : 'match';
  return `${matched_count.toLocaleString()} of ${total_count.toLocaleString()} events ${period} ${verb}.`;
}

const MICROS_PER_SECOND = 1_000_000;

/** Explains what a rate limit means for the recent events. @param rateLimit requests per second */
export function describeVolume(
  { matched_count, since, until }: Pick<MatchPreview, 'matched_count' | 'since' | 'until'>,
  rateLimit: number,
): string {
  const seconds = (Number(until) - Number(since)) / MICROS_PER_SECOND;
  const volume = seconds > 0 ? matched_count / seconds : 0;
  if (volume < 0.01) return 'The matching events of the last 7 days are far below any rate limit.';
  const text = volume.toPrecision(2);
  return rateLimit < volume
    ? `The matching events of the last 7 days were ${text} per second on average: with this limit, deliveries pile up until the account’s limit of waiting deliveries, and later ones are cancelled.`
    : `Below ${text} per second, the events of the last 7 days would pile up until the account’s limit of waiting deliveries.`;
}
