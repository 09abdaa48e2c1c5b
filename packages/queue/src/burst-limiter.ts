import { LRUCache } from 'lru-cache';

/**
 * Limits the events that an account adds at normal priority, so that a burst of one account does not delay the events
 * of others. Further events are added at low priority: workers take them while none of normal priority waits.
 */
export interface BurstLimiter {
  /** Counts an event of the account. Returns whether it is within the burst limit. */
  take(accountId: number): boolean;
}

/** Number of events that an account may add at once. A dispatcher processes them in less than a second. */
const BURST_EVENTS = 1_000;
const EVENTS_PER_SECOND = 500;
const ACCOUNTS_MAX = 10_000;

/**
 * Creates a token bucket for each account, in each process that adds events. The least recently used accounts are
 * dropped from the cache; an account that is not cached has a full bucket.
 */
export function createBurstLimiter(nowMs: () => number = () => performance.now()): BurstLimiter {
  const buckets = new LRUCache<number, { tokens: number; atMs: number }>({
    maxSize: ACCOUNTS_MAX,
    sizeCalculation: () => 1,
  });

  return {
    take(accountId) {
      const now = nowMs();
      const previous = buckets.get(accountId);
      const refilled = previous
        ? previous.tokens + ((now - previous.atMs) / 1_000) * EVENTS_PER_SECOND
        : BURST_EVENTS;
      const tokens = Math.min(BURST_EVENTS, refilled);
      const isWithin = tokens >= 1;
      buckets.set(accountId, { tokens: isWithin ? tokens - 1 : tokens, atMs: now });
      return isWithin;
    },
  };
}
