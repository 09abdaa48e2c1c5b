/** Number of events in a span of time. */
export interface EventVolume {
  count: number;
  seconds: number;
}

/**
 * Returns the rate limit below which a webhook with these events would reach the limit of waiting deliveries, in requests
 * per second, rounded up to three decimals: within consecutive spans, or later if the events continue like this. Counts
 * one request per event; retries need more.
 * @param spans consecutive
 */
export function lowestRateLimit(spans: readonly EventVolume[], pendingMax: number): number {
  let lowest = 0;
  for (const from of spans.keys()) {
    let count = 0;
    let seconds = 0;
    for (const span of spans.slice(from)) {
      count += span.count;
      seconds += span.seconds;
      const isAll = seconds > 0 && from === 0 && span === spans.at(-1);
      const mustSend = isAll ? count : count - pendingMax;
      if (seconds > 0) lowest = Math.max(lowest, mustSend / seconds);
    }
  }
  return Math.ceil(lowest * 1_000) / 1_000;
}
