/**
 * npm passes on to us the SIGINT that the terminal has sent us already: two of them within this time are one Ctrl-C.
 */
const ECHO_MS = 500;
const PARENT_POLL_MS = 250;

/**
 * The first Ctrl-C (or SIGTERM, or the terminal's end) aborts `signal`, and everything is stopped in order. The
 * second one runs what `onSecond` was given, and ends the process on the spot.
 *
 * @returns {{ signal: AbortSignal, onSecond(kill: () => void): void }}
 */
export function watchStopSignals() {
  const controller = new AbortController();
  const killers = [];
  let firstAt = 0;
  const onSignal = () => {
    if (!controller.signal.aborted) {
      firstAt = performance.now();
      controller.abort();
    } else if (performance.now() - firstAt > ECHO_MS) {
      for (const kill of killers) kill();
      process.exit(130);
    }
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, onSignal);
  if (process.env.npm_lifecycle_event === 'start') onOrphaned(() => controller.abort());
  return { signal: controller.signal, onSecond: (kill) => killers.unshift(kill) };
}

/** npm hands a SIGTERM to its shell only. That dies of it and leaves us running, with nobody to stop us. */
function onOrphaned(stop) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop();
  }, PARENT_POLL_MS).unref();
}
