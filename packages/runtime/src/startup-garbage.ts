/** Wait before the collection, which exceeds the duration of a start, including the work after readiness. */
const DELAY_MS = 10_000;
/** A process with a higher event loop utilization collects its garbage without help. */
const BUSY_UTILIZATION = 0.1;

export interface StartupGarbageOptions {
  afterMs?: number;
  /**
   * Node's own function with `--expose-gc`, which the start commands of the services contain; without it nothing is
   * done.
   */
  gc?: (() => unknown) | undefined;
}

/**
 * Collects the garbage of loading the modules. V8 collects only when memory is allocated, so an idle service would
 * retain some 15 MB. Must be called once the service is ready.
 */
export function collectStartupGarbage({
  afterMs = DELAY_MS,
  gc = globalThis.gc,
}: StartupGarbageOptions = {}): void {
  if (gc === undefined) return;
  const ready = performance.eventLoopUtilization();
  setTimeout(() => {
    if (performance.eventLoopUtilization(ready).utilization < BUSY_UTILIZATION) gc();
  }, afterMs).unref();
}
