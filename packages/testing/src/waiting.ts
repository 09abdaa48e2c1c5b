import { setTimeout as wait } from 'node:timers/promises';

/**
 * Runs the assertion until it does not throw, and gives its value; after `timeoutMs` (5,000) it throws what the
 * assertion threw last. For what is written asynchronously and sends no signal. `intervalMs` (25) lies between tries.
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { timeoutMs = 5_000, intervalMs = 25 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  while (true) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() + intervalMs > deadline) throw error;
    }
    await wait(intervalMs);
  }
}
