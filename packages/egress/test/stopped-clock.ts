import { jest } from '@jest/globals';
import { turn } from './listening.ts';

/**
 * Stops the clock that deadlines are measured with, so that a test decides when they pass, on however busy a machine.
 * Everything else goes on: sockets, `setImmediate`, the dates of got's timings.
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

/** What is due meanwhile happens, and what follows from it. */
export async function passMs(ms: number): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
  await turn();
  await turn();
}

/** got lets whatever has arrived by then be read first, and says a millisecond later that the time is up. */
export const GOT_GRACE_MS = 1;
