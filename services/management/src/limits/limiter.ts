import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';

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
export function limiterOf(library: RateLimiterAbstract): Limiter {
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
