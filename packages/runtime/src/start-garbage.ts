/** By then whatever a start does is done, what follows readiness too. */
const AFTER_MS = 10_000;
/** A process that is at work for a larger share of the time collects its garbage by itself. */
const AT_WORK = 0.1;

export interface StartGarbageOptions {
  afterMs?: number;
  /** Node's own with `--expose-gc`, which is in the start commands of the services; nothing is done without one. */
  gc?: (() => unknown) | undefined;
}

/**
 * Lets go of what loading took. V8 collects when something is allocated, so that a service with nothing to do keeps some 15 MB of
 * that until it has, and gives none of it back to the system. To be called once the service is ready.
 */
export function letGoOfStart({ afterMs = AFTER_MS, gc = globalThis.gc }: StartGarbageOptions = {}): void {
  if (gc === undefined) return;
  const ready = performance.eventLoopUtilization();
  setTimeout(() => {
    if (performance.eventLoopUtilization(ready).utilization < AT_WORK) gc();
  }, afterMs).unref();
}
