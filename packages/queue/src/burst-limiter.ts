import { LRUCache } from 'lru-cache';

/**
 * How many events an account may have put in line at once, so that a burst of one account does not stand in front of
 * everybody's events. What is beyond goes in behind: taken when nothing else waits.
 */
export interface BurstLimiter {
  /** Whether the account's next event is within its burst limit; counts it. */
  take(accountId: number): boolean;
}

/** A dispatcher works this off in less than a second. */
const BURST_EVENTS = 1_000;
const EVENTS_PER_SECOND = 500;
const ACCOUNTS_MAX = 10_000;

/**
 * A token bucket for each account, in each process that puts events in line. An account that is not remembered has a
 * full bucket, which those in use longest ago get back when there are too many to remember.
 */
export function createBurstLimiter(nowMs: () => number = () => performance.now()): BurstLimiter {
  const buckets = new LRUCache<number, { tokens: number; atMs: number }>({
    maxSize: ACCOUNTS_MAX,
    sizeCalculation: () => 1,
  });

  return {
    take(accountId) {
      const now = nowMs();
      const former = buckets.get(accountId);
      const refilled = former
        ? former.tokens + ((now - former.atMs) / 1_000) * EVENTS_PER_SECOND
        : BURST_EVENTS;
      const tokens = Math.min(BURST_EVENTS, refilled);
      const isWithin = tokens >= 1;
      buckets.set(accountId, { tokens: isWithin ? tokens - 1 : tokens, atMs: now });
      return isWithin;
    },
  };
}
