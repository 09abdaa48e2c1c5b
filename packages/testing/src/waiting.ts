import { setTimeout as wait } from 'node:timers/promises';

/**
 * When a wait in vain ends, to say what it waited for: before jest's own timeout, which would not. No test is about how
 * long something takes, so this is far beyond what a busy machine needs.
 */
export const IN_VAIN_MS = 60_000;

const INTERVAL_MAX_MS = 250;

/**
 * Runs the assertion until it does not throw, and gives its value; after `timeoutMs` ({@link IN_VAIN_MS}) it throws what
 * the assertion threw last. For what is written asynchronously and sends no signal. `intervalMs` (25) lies between tries at
 * first, and a fifth of the time that it has waited when that is longer, up to a quarter of a second: looking costs.
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { timeoutMs = IN_VAIN_MS, intervalMs = 25 }: { timeoutMs?: number; intervalMs?: number } = {},
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
