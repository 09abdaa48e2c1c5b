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
import { type Principal, scopeIn } from '../identity/principals.ts';

/** `refused` has the whole seconds until the window ends, at least 1. */
export type Taking = { kind: 'taken' } | { kind: 'refused'; retryAfterSeconds: number };

/** Permits a number of calls per key in a window, which starts with the first call. Rejected calls do not extend it. */
export interface Limiter {
  take(key: string): Promise<Taking>;
  /** Removes one call from the count. */
  giveBack(key: string): Promise<void>;
  /** Removes all calls of the key. */
  forget(key: string): Promise<void>;
}

/** Adapts the library, which throws an object that is not an Error when a limit is reached. */
function limiterOf(library: RateLimiterAbstract): Limiter {
  return {
    async take(key) {
      try {
        await library.consume(key);
        return { kind: 'taken' };
      } catch (thrown) {
        if (!(thrown instanceof RateLimiterRes)) throw thrown;
        return {
          kind: 'refused',
          retryAfterSeconds: Math.max(1, Math.ceil(thrown.msBeforeNext / 1000)),
        };
      }
    },
    async giveBack(key) {
      await library.reward(key);
    },
    async forget(key) {
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
  refusedFromMemory: boolean;
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
        limiterOf(
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
      limiterOf(
        new RateLimiterRedis({
          ...libraryOptions(limiter),
          storeClient: redis,
          rejectIfRedisNotReady: true,
        }),
      ),
    close: async () => redis.disconnect(),
  };
}

function libraryOptions({ name, callsMax, windowSeconds, refusedFromMemory }: LimiterOptions) {
  const counting = { keyPrefix: `runhook:limit:${name}`, points: callsMax, duration: windowSeconds };
  return {
    ...counting,
    insuranceLimiter: new RateLimiterMemory(counting),
    ...(refusedFromMemory ? { inMemoryBlockOnConsumed: callsMax } : {}),
  };
}

/**
 * Returns the key of the rate limit that a call counts towards: the account of the path if the caller has access to it,
 * otherwise the token's account or the user, so that no one can use up the limit of another account.
 * @param accountIdText as in the path; null if the path names no account
 */
export function requestBudget(principal: Principal, accountIdText: string | null): string {
  const accountId = accountIdText === null ? null : integerIdFromText(accountIdText);
  const scope = accountId === null ? null : scopeIn(principal, accountId);
  if (scope) return `account:${scope.account.id}`;
  return principal.kind === 'user' ? `user:${principal.userId}` : `account:${principal.account.id}`;
}
