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

  async function turn(): Promise<void> {
    await measure().catch(onError);
    if (stopped) return;
    timer = setTimeout(() => {
      underway = turn();
    }, everyMs);
    timer.unref();
  }

  let underway = turn();
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
 * Waits for the work, but no longer than `timeoutMs`.
 * @throws DeadlineError when the time is over, or whatever the work throws before.
 */
export async function withinDeadline(
  timeoutMs: number,
  work: () => Promise<unknown> | unknown,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(`did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([(async () => work())(), expiry]);
  } finally {
    clearTimeout(timer);
  }
}
