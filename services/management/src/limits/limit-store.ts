import type { Database } from '@runhook/database';
import { openRedis, queueBackendName } from '@runhook/queue';
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRedis } from 'rate-limiter-flexible';
import { type Limiter, limiterOf } from './limiter.ts';

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
  pool: Database['pool'];
  onError: (error: Error) => void;
}): Promise<LimitStore> {
  const { queueUrl, pool, onError } = options;
  if (queueBackendName(queueUrl) === 'PostgreSQL') {
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
  const redis = await openRedis(queueUrl, onError);
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
