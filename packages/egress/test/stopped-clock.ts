import { jest } from '@jest/globals';
import { nextIteration } from './listening.ts';

/**
 * Stops the clock of deadlines, so that a test decides when they expire even on a busy machine. `setImmediate`, sockets
 * and the dates in got's timings are not affected.
 */
export function stopClock(): void {
  jest.useFakeTimers({
    doNotFake: [
      'Date',
      'hrtime',
      'nextTick',
      'queueMicrotask',
      'setImmediate',
      'clearImmediate',
      'setInterval',
      'clearInterval',
    ],
  });
}

export function startClock(): void {
  jest.useRealTimers();
}

/** Advances the clock, runs the timers that become due, and waits for their effects. */
export async function passMs(ms: number): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
  await nextIteration();
  await nextIteration();
}

/** got waits for one more millisecond before it reports a timeout, so that data that has arrived is read first. */
export const GOT_GRACE_MS = 1;
