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
