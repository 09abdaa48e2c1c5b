import { integerIdFromText } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import { openRedis } from '@runhook/queue';
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import { findScope, type Principal } from '../identity/principals.ts';

/** `rejected` has the whole seconds until the window ends, at least 1. */
export type LimitResult = { kind: 'accepted' } | { kind: 'rejected'; retryAfterSeconds: number };

/** The result of a limiter: `accepted` has the number of calls of the key in the window, including this one. */
export type CountedResult = { kind: 'accepted'; count: number } | Extract<LimitResult, { kind: 'rejected' }>;

/** Permits a number of calls per key in a window, which starts with the first call. Rejected calls do not extend it. */
export interface Limiter {
  consume(key: string): Promise<CountedResult>;
  /** Removes one call from the count of the current window, if there is any. */
  refund(key: string): Promise<void>;
  /** Removes all calls of the key. */
  reset(key: string): Promise<void>;
}

/** Adapts the library, which throws an object that is not an Error when a limit is reached. */
function adaptLimiter(library: RateLimiterAbstract): Limiter {
  return {
    async consume(key) {
      try {
        const { consumedPoints } = await library.consume(key);
        return { kind: 'accepted', count: consumedPoints };
      } catch (thrown) {
        if (!(thrown instanceof RateLimiterRes)) throw thrown;
        return {
          kind: 'rejected',
          retryAfterSeconds: Math.max(1, Math.ceil(thrown.msBeforeNext / 1000)),
        };
      }
    },
    async refund(key) {
      // The window of the call may have ended; a negative count would permit further calls in the next one.
      const counted = await library.get(key);
      if (counted !== null && counted.consumedPoints > 0) await library.reward(key);
    },
    async reset(key) {
      await library.delete(key);
    },
  };
}

export interface LimiterOptions {
  /** Prefix of the keys, which separates limiters. */
  name: string;
  callsMax: number;
  windowSeconds: number;
  /**
   * Whether a process that saw a key reach its limit rejects the rest of the window from memory, without a write. Must
   * be false for a limiter whose keys are reset, because only the process that resets a key would know.
   */
  rejectsFromMemory: boolean;
}

/** Shared counters of all processes. */
export interface LimitStore {
  createLimiter(options: LimiterOptions): Limiter;
  close(): Promise<void>;
}

/**
 * Counts in Redis if the queue is there, otherwise in PostgreSQL, at the cost of one small write to an unlogged table
 * for each call below the limit. While the store is unavailable, each process counts alone: a limit that is temporarily
 * too generous is better than an unavailable API.
 */
export async function openLimitStore(options: {
  queueUrl: string;
  pool: Pool;
  onError: (error: Error) => void;
  /** Time Redis may take for one count; half a second when omitted. */
  countTimeoutMs?: number | undefined;
}): Promise<LimitStore> {
  const { queueUrl, pool, onError, countTimeoutMs } = options;
  const redis = await openRedis(queueUrl, onError, countTimeoutMs);
  if (redis === null) {
    return {
      createLimiter: (limiter) =>
        adaptLimiter(
          new RateLimiterPostgres({
            ...libraryOptions(limiter),
            storeClient: pool,
            storeType: 'pool',
            tableName: 'rate_limits',
            tableCreated: true,
            clearExpiredByTimeout: true,
          }),
        ),
      close: async () => undefined,
    };
  }
  return {
    createLimiter: (limiter) =>
      adaptLimiter(
        new RateLimiterRedis({
          ...libraryOptions(limiter),
          storeClient: redis,
          rejectIfRedisNotReady: true,
        }),
      ),
    close: async () => redis.disconnect(),
  };
}

function libraryOptions({ name, callsMax, windowSeconds, rejectsFromMemory }: LimiterOptions) {
  const counterOptions = { keyPrefix: `runhook:limit:${name}`, points: callsMax, duration: windowSeconds };
  return {
    ...counterOptions,
    insuranceLimiter: new RateLimiterMemory(counterOptions),
    ...(rejectsFromMemory ? { inMemoryBlockOnConsumed: callsMax } : {}),
  };
}

/**
 * Returns the key of the rate limit that a call counts towards: the account of the path if the caller has access to it,
 * otherwise the token's account or the user, so that no one can use up the limit of another account.
 * @param accountIdText as in the path; null if the path names no account
 */
export function requestLimitKey(principal: Principal, accountIdText: string | null): string {
  const accountId = accountIdText === null ? null : integerIdFromText(accountIdText);
  const scope = accountId === null ? null : findScope(principal, accountId);
  if (scope) return `account:${scope.account.id}`;
  return principal.kind === 'user' ? `user:${principal.userId}` : `account:${principal.account.id}`;
}
