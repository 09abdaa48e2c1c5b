/** Takes a measurement on a schedule, so that a scrape costs nothing however often it comes. */
export interface Periodic {
  /** Lets a measurement under way end. */
  stop(): Promise<void>;
}

/**
 * Calls `measure` at once and then `everyMs` after the last call ended: one that hangs is not piled upon.
 * @param onError told of what `measure` throws; the next one comes all the same
 */
export function startPeriodic(
  everyMs: number,
  measure: () => Promise<void>,
  onError: (error: unknown) => void,
): Periodic {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function measureAndSchedule(): Promise<void> {
    await measure().catch(onError);
    if (stopped) return;
    timer = setTimeout(() => {
      underway = measureAndSchedule();
    }, everyMs);
    timer.unref();
  }

  let underway = measureAndSchedule();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await underway;
    },
  };
}

/** Marks work that did not end in time; the work itself goes on, nothing can stop a promise. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  readonly code = 'ERR_DEADLINE';
}

/**
 * Waits for the work, but no longer than `timeoutMs`. A failure of work that is late is dropped.
 * @throws DeadlineError when the time is over, or whatever the work throws before.
 */
export async function withinDeadline<T>(timeoutMs: number, work: () => Promise<T> | T): Promise<T> {
  // A timer that is cleared: one that an AbortSignal ends makes an error with its stack, 0.2 ms of each request.
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(`did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([(async () => work())(), expiry]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when the work has ended, however it did, or when the time is over; leaves no timer behind. */
export async function endedWithin(timeMs: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeMs);
  });
  const ended = work.then(
    () => {},
    () => {},
  );
  await Promise.race([ended, over]);
  clearTimeout(timer);
}

/**
 * A wait between half of `waitMs` and all of it, so that processes that lost the same server do not all return to it at the same instant.
 * @param random from 0 to 1
 */
export function jittered(waitMs: number, random = Math.random()): number {
  return (waitMs * (1 + random)) / 2;
}
