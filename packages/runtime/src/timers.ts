/** A measurement that is taken on a schedule, so that frequent scrapes cost nothing. */
export interface Periodic {
  /** Ends the schedule, and waits for a measurement in progress. */
  stop(): Promise<void>;
}

/**
 * Calls `measure` immediately and then `everyMs` after each call has ended, so that slow calls do not overlap.
 * @param onError called with the errors of `measure`; the schedule continues
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
      running = measureAndSchedule();
    }, everyMs);
    timer.unref();
  }

  let running = measureAndSchedule();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** Work did not end before its deadline; the work itself continues, because a promise cannot be stopped. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  readonly code = 'ERR_DEADLINE';
}

/**
 * Waits for the work for at most `timeoutMs`. Later failures of the work are ignored.
 * @throws DeadlineError at the deadline, or the error of the work before it
 */
export async function withinDeadline<T>(timeoutMs: number, work: () => Promise<T> | T): Promise<T> {
  // Uses a timer because an AbortSignal creates an error with its stack when it fires, 0.2 ms per request.
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

/** Resolves once the work has settled or the time is over; leaves no timer. */
export async function waitAtMost(timeMs: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeMs);
  });
  const ended = work.then(
    () => {},
    () => {},
  );
  await Promise.race([ended, timeout]);
  clearTimeout(timer);
}

/**
 * Returns a wait between half of `waitMs` and all of it, so that processes that lost the same server do not reconnect
 * simultaneously.
 * @param random from 0 to 1
 */
export function withJitter(waitMs: number, random = Math.random()): number {
  return (waitMs * (1 + random)) / 2;
}
