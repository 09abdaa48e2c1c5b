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

/** `refused` says in how many whole seconds the window ends, 1 at least. */
export type Taking = { kind: 'taken' } | { kind: 'refused'; retryAfterSeconds: number };

/** So many calls for each key in a window, which begins with the key's first call. Refused calls do not lengthen it. */
export interface Limiter {
  take(key: string): Promise<Taking>;
  /** Makes one call undone. */
  giveBack(key: string): Promise<void>;
  /** Makes all calls of the key undone. */
  forget(key: string): Promise<void>;
}

/** The library throws what is no fault, and throws it as what is no error. */
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
  /** Keeps the keys of one limiter apart from those of another. */
  name: string;
  callsMax: number;
  windowSeconds: number;
  /**
   * Whether a process that saw a key reach its limit refuses the rest of the window by itself, without a write. Not for
   * a limiter whose keys are forgotten: only the process that forgets would know.
   */
  refusedFromMemory: boolean;
}

/** Where calls are counted, for all processes together. */
export interface LimitStore {
  createLimiter(options: LimiterOptions): Limiter;
  close(): Promise<void>;
}

/**
 * Counts in Redis when the queue is there, otherwise in PostgreSQL, at the cost of one small write to an unlogged
 * table for each call below the limit. While the store cannot be asked, each process counts for itself: a limit that
 * is too generous for a while is better than an API that is away.
 */
export async function openLimitStore(options: {
  queueUrl: string;
  pool: Pool;
  onError: (error: Error) => void;
  /** How long Redis may take for one count; half a second when omitted. */
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
 * Whose limit of requests a call counts against: the account it names, when the caller has a part in it. Otherwise the
 * caller's own, a token's account or the user: nobody uses up the budget of somebody else's account.
 * @param accountIdText as the path has it; null when the path names no account
 */
export function requestBudget(principal: Principal, accountIdText: string | null): string {
  const accountId = accountIdText === null ? null : integerIdFromText(accountIdText);
  const scope = accountId === null ? null : scopeIn(principal, accountId);
  if (scope) return `account:${scope.account.id}`;
  return principal.kind === 'user' ? `user:${principal.userId}` : `account:${principal.account.id}`;
}
