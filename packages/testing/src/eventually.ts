import { setTimeout as wait } from 'node:timers/promises';

/**
 * Time limit of a wait, after which it reports its last error; less than Jest's timeout, which would not report it. Far
 * more than a busy machine needs, because no test measures durations.
 */
export const WAIT_TIMEOUT_MS = 60_000;

const INTERVAL_MAX_MS = 250;

/**
 * Repeats the assertion until it does not throw, and returns its value; after `timeoutMs` ({@link WAIT_TIMEOUT_MS}) throws
 * the last error. For results that are written asynchronously without a signal. The interval is `intervalMs` (25) or a
 * fifth of the elapsed time, whichever is longer, up to a quarter of a second, because each check costs CPU.
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { timeoutMs = WAIT_TIMEOUT_MS, intervalMs = 25 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<T> {
  const startedAtMs = performance.now();
  while (true) {
    try {
      return await assertion();
    } catch (error) {
      const waitedMs = performance.now() - startedAtMs;
      const pauseMs = Math.max(intervalMs, Math.min(waitedMs / 5, INTERVAL_MAX_MS));
      if (waitedMs + pauseMs > timeoutMs) throw error;
      await wait(pauseMs);
    }
  }
}
